"""The text of haproxy.cfg. HAProxy runs inside the gateway's folder, so files and sockets have plain names."""

from urllib.parse import urlsplit

from stack.catalogue import POLICIES, UNLIMITED
from stack.local.configuration import LocalStack
from stack.local.gateway import layout
from stack.local.gateway.values import Values
from stack.snapshot import FLEET

BYTES_PER_TOKEN = 4
"""Bytes of a JSON body per prompt token, roughly, for English text and common tokenizers."""
SHORT_PROMPT_TOKENS = 2_000
"""A longer prompt is a long one for the priority policies, as in the simulator."""
LOAD_BOUND = 1.25
"""A server above so many times the mean load passes a session to the next one, as in the simulator."""
BODY_WAIT_S = 5
BUFFER_BYTES = 65_536
"""Body bytes that rules can see and that a retry can send again."""

OPEN_PATHS = (
    "/health /ping /version /tokenize /detokenize /pooling /classify /score /rerank /embeddings /invocations "
    "/generative_scoring"
)
"""Beside /v1/ and /v2/. All else vLLM serves changes the engine, or tells of it what users need not know."""

_GLOBAL = f"""\
global
    nbthread 2
    log stdout format raw local0 info
    stats socket unix@{layout.ADMIN_SOCKET} mode 600 level admin
    stats socket unix@{layout.READ_SOCKET} mode 600 level user
    stats timeout 10s
    server-state-file {layout.SERVER_STATE}
    tune.bufsize {BUFFER_BYTES}
    lua-load {layout.LUA}
"""

_REFUSED = (
    '{"error":{"message":"no replica can take the request in time; try again later",'
    '"type":"overloaded","code":503,"reason":"%s"}}'
)

_USERS = f"""\
frontend {layout.USERS}
    bind ADDRESS
    filter lua.outstanding
    option forwardfor
    acl climbs path,url_dec -m sub ..
    acl known path_beg /v1/ /v2/
    acl known path {OPEN_PATHS}
    acl lora path_sub lora_adapter
    acl is_batch req.hdr(x-priority) -m str -i batch
    acl is_long req.body_size -m int gt {SHORT_PROMPT_TOKENS * BYTES_PER_TOKEN}
    http-request set-var(txn.open) bool(true) if known !climbs !lora
    acl generates var(txn.open) -m bool
    acl generates_post method POST
    http-request wait-for-body time {BODY_WAIT_S}s if generates generates_post
    http-request set-var(txn.policy) str(routing_policy),map_str({layout.CHOICES},round_robin)
    http-request set-var(txn.lane) str(interactive_short)
    http-request set-var(txn.lane) str(interactive_long) if is_long
    http-request set-var(txn.lane) str(batch_short) if is_batch
    http-request set-var(txn.lane) str(batch_long) if is_batch is_long
    http-request set-var(txn.rank) str(priority_policy),map_str({layout.CHOICES},fcfs),concat(/,txn.lane)
    http-request set-priority-class var(txn.rank),map_str_int({layout.RANKS},0)
    acl batch_is_free str(batch_in_flight_cap),map_str({layout.NUMBERS},{UNLIMITED:.0f}) -m str {UNLIMITED:.0f}
    http-request set-var(txn.apart) bool(true) if is_batch !batch_is_free
    http-request lua.admit if generates generates_post
    acl refused var(txn.refused) -m found
    http-request return status 503 content-type application/json hdr Retry-After %[var(txn.retry_after)] \
lf-string '{_REFUSED % "%[var(txn.refused)]"}' if refused
    http-request lua.choose if generates generates_post
    use_backend {layout.CLOSED} if !generates
    use_backend {layout.BATCH} if {{ var(txn.apart) -m bool }}
    use_backend policy_%[var(txn.policy)]
    default_backend {layout.POLICY_BACKENDS[0]}
"""

_METRICS = f"""\
frontend {layout.METRICS}
    bind ADDRESS
    http-request use-service prometheus-exporter if {{ path /metrics }}
    http-request use-service lua.held if {{ path {layout.HELD_PATH} }}
    stats enable
    stats uri /stats
    stats refresh 5s
"""

_CLOSED = f"""\
backend {layout.CLOSED}
    http-request return status 403 content-type application/json string \
'{{"error":{{"message":"this route is not open to users","type":"forbidden","code":403}}}}'
"""

_BALANCE = {
    "round_robin": "balance roundrobin",
    "session_hash": "balance hdr(x-session-id)\n    hash-type consistent sdbm avalanche"
    f"\n    hash-balance-factor {LOAD_BOUND * 100:.0f}",
}
"""Other policies, and what the Lua leaves open, go by least connections."""


def config_text(configuration: LocalStack, values: Values) -> str:
    """The whole file; `values` has every gateway setting and target."""
    gateway = configuration.gateway
    policies = [
        _backend(configuration, values, layout.policy_backend(policy), _BALANCE.get(policy, "balance leastconn"))
        for policy in POLICIES
    ]
    return "\n".join(
        (
            _GLOBAL,
            _defaults(gateway.queue_s, gateway.silence_s),
            _USERS.replace("ADDRESS", _bound(gateway.url)),
            _METRICS.replace("ADDRESS", _bound(gateway.metrics_url)),
            *policies,
            _backend(configuration, values, layout.BATCH, "balance leastconn"),
            _CLOSED,
            _replicas(configuration, values),
        )
    )


def _defaults(queue_s: float, silence_s: float) -> str:
    """Common to all parts.

    A connection to a server is closed after each answer: an engine closes idle ones after 5 s, and a request that meets
    that moment is lost where it is too long to be sent again. 500 is what vLLM answers while it stops or after its
    engine has died. Its 503 means that its queue is full, and is not retried. On a starved machine a living
    engine may take seconds to answer a health check; a dead one refuses it at once.
    """
    late = _REFUSED % "queue_timeout"
    return f"""\
defaults
    mode http
    log global
    option httplog
    option dontlog-normal
    option http-server-close
    option abortonclose
    option http-no-delay
    option redispatch 1
    retries 2
    retry-on conn-failure empty-response 500
    timeout connect 5s
    timeout client {_ms(silence_s + queue_s)}
    timeout server {_ms(silence_s)}
    timeout queue {_ms(queue_s)}
    timeout http-request 30s
    timeout http-keep-alive 60s
    timeout check 10s
    load-server-state-from-file global
    http-error status 503 content-type application/json hdr Retry-After 5 string '{late}'
"""


def _backend(configuration: LocalStack, values: Values, name: str, balance: str) -> str:
    lines = [f"backend {name}", f"    {balance}"]
    if name != layout.BATCH:
        lines.append("    use-server %[var(txn.server)] if { var(txn.server) -m found }")
    for replica in configuration.replicas:
        limit = limit_of(name, replica.name, values)
        weight = values["routing_weight"][replica.name]
        server = f"server {replica.name} {_bound(replica.url)} weight {weight:.0f}"
        lines.append(f"    {server} maxconn {limit} track {layout.REPLICAS}/{replica.name} init-addr last,libc,none")
    return "\n".join(lines) + "\n"


def _replicas(configuration: LocalStack, values: Values) -> str:
    """The last of all, so that the exporter lists the others first."""
    lines = [
        f"backend {layout.REPLICAS}",
        "    option httpchk GET /health",
        "    http-check expect status 200",
        "    default-server check inter 2s fastinter 500ms downinter 1s fall 2 rise 1 init-addr last,libc,none",
    ]
    for replica in configuration.replicas:
        weight = values["routing_weight"][replica.name]
        lines.append(f"    server {replica.name} {_bound(replica.url)} weight {weight:.0f}")
    return "\n".join(lines) + "\n"


def limit_of(backend: str, replica: str, values: Values) -> int:
    """HAProxy's maxconn for a server; 0 is no limit. The batch backend's also keeps to its own cap."""
    cap = float(values["replica_concurrency_cap"][replica])
    if backend == layout.BATCH:
        cap = min(cap, float(values["batch_in_flight_cap"][FLEET]))
    return 0 if cap >= UNLIMITED else int(cap)


def _bound(url: str) -> str:
    """An http URL's host and port as HAProxy writes them."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"[{host}]:{parts.port}" if ":" in host else f"{host}:{parts.port}"


def _ms(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"
