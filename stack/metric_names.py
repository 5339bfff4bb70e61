"""One table: what vLLM (v0 era, 0.8 to 0.32) and HAProxy call each canonical quantity.

vLLM names are written without their `vllm:` (or, behind some collectors, `vllm_`) prefix, newest first: where a scrape
has several of them, the newest wins. Counter names are the wire names, to which the client library adds `_total`.
Presence by version was read from the sources of vLLM 0.8.5 to 0.32.0 and from a v0-era scrape.
"""

from stack.reading import Counter, Distribution, Gauge

ENGINE_PREFIXES = ("vllm:", "vllm_")
PROBE_PREFIX = "flashvector:"
"""Prefix of what our own device probe exports, as vLLM has no metric for device memory."""

ENGINE_GAUGES: dict[Gauge, tuple[str, ...]] = {
    Gauge.RUNNING: ("num_requests_running",),
    Gauge.WAITING: ("num_requests_waiting",),
    Gauge.KV_USAGE_RATIO: ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    Gauge.PROMPT_TOKENS_PER_S: ("avg_prompt_throughput_toks_per_s",),
    Gauge.GENERATION_TOKENS_PER_S: ("avg_generation_throughput_toks_per_s",),
    Gauge.LOGGED_PREFIX_HIT_RATIO: ("gpu_prefix_cache_hit_rate",),
}

SWAPPED = "num_requests_swapped"
"""v0 only: preempted requests whose KV is in host memory. They wait, as v1's preempted ones do, so they count so."""

ENGINE_COUNTERS: dict[Counter, tuple[str, ...]] = {
    Counter.PREEMPTIONS: ("num_preemptions_total",),
    Counter.PROMPT_TOKENS: ("prompt_tokens_total",),
    Counter.GENERATION_TOKENS: ("generation_tokens_total",),
    Counter.PREFIX_QUERIED_TOKENS: ("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
    Counter.PREFIX_HIT_TOKENS: ("prefix_cache_hits_total", "gpu_prefix_cache_hits_total"),
    Counter.DRAFTS: ("spec_decode_num_drafts_total",),
    Counter.DRAFTED_TOKENS: ("spec_decode_num_draft_tokens_total",),
    Counter.ACCEPTED_TOKENS: ("spec_decode_num_accepted_tokens_total",),
    Counter.SHED: ("admission_rejections_total",),
}

FINISHED_REQUESTS = "request_success_total"
FINISHED_REASON = "finished_reason"
UNSUCCESSFUL: dict[str, Counter] = {"abort": Counter.ABORTED, "error": Counter.ERRORS}
"""Values of the `finished_reason` label that are not a finished answer."""

ENGINE_HISTOGRAMS: dict[Distribution, tuple[str, ...]] = {
    Distribution.TTFT_S: ("time_to_first_token_seconds",),
    Distribution.ITL_S: ("inter_token_latency_seconds", "time_per_output_token_seconds"),
    Distribution.E2E_S: ("e2e_request_latency_seconds",),
    Distribution.QUEUE_S: ("request_queue_time_seconds", "time_in_queue_requests"),
    Distribution.PREFILL_S: ("request_prefill_time_seconds",),
    Distribution.DECODE_S: ("request_decode_time_seconds",),
    Distribution.PROMPT_TOKENS: ("request_prompt_tokens",),
    Distribution.OUTPUT_TOKENS: ("request_generation_tokens",),
    Distribution.STEP_TOKENS: ("iteration_tokens_total",),
}

CONFIGURATION = "cache_config_info"
PROCESS_START = "process_start_time_seconds"

PROBE_GAUGES: dict[Gauge, str] = {
    Gauge.DEVICE_FREE_BYTES: "device_free_bytes",
    Gauge.DEVICE_TOTAL_BYTES: "device_total_bytes",
    Gauge.FRAGMENTATION_RATIO: "memory_fragmentation_ratio",
}

SERVER_GAUGES: dict[Gauge, tuple[str, ...]] = {
    Gauge.GATEWAY_QUEUE: ("haproxy_server_current_queue",),
    Gauge.GATEWAY_SESSIONS: ("haproxy_server_current_sessions",),
    Gauge.GATEWAY_WEIGHT: ("haproxy_server_uweight", "haproxy_server_weight"),
    Gauge.GATEWAY_LIMIT: ("haproxy_server_limit_sessions",),
}
"""A limit of 0 means no limit."""
SERVER_STATUS = "haproxy_server_status"
SERVER_ARRIVED = "haproxy_server_sessions_total"
SERVER_RESPONSES = "haproxy_server_http_responses_total"
BACKEND_QUEUE = "haproxy_backend_current_queue"
BACKEND_SESSIONS = "haproxy_backend_current_sessions"
BACKEND_RESPONSES = "haproxy_backend_http_responses_total"
FRONTEND_ARRIVED = "haproxy_frontend_http_requests_total"
FRONTEND_REFUSED = ("haproxy_frontend_requests_denied_total", "haproxy_frontend_intercepted_requests_total")
"""Requests that `http-request deny` or `return` answered, which is how the gateway sheds load."""
GATEWAY_START = "haproxy_process_start_time_seconds"
HOUSEKEEPING_PROXIES = ("stats", "metrics", "prometheus")
"""Proxies with such a word in their name serve the exporter, not users."""

GATEWAY_NAMES = frozenset(
    {wire for wires in SERVER_GAUGES.values() for wire in wires}
    | {SERVER_STATUS, SERVER_ARRIVED, SERVER_RESPONSES, BACKEND_QUEUE, BACKEND_SESSIONS, BACKEND_RESPONSES}
    | {GATEWAY_START, FRONTEND_ARRIVED, *FRONTEND_REFUSED}
)
"""All that is read of HAProxy's exporter."""

RATIOS = frozenset({Gauge.KV_USAGE_RATIO, Gauge.LOGGED_PREFIX_HIT_RATIO, Gauge.FRAGMENTATION_RATIO})
"""Gauges that must lie between 0 and 1, whatever their wire name says of percent."""


def without_prefix(name: str) -> str | None:
    """The vLLM name without its prefix, or None when `name` is not vLLM's."""
    for prefix in ENGINE_PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return None


def _engine_names() -> frozenset[str]:
    histograms = {name for group in ENGINE_HISTOGRAMS.values() for name in group}
    bare = {name for group in (*ENGINE_GAUGES.values(), *ENGINE_COUNTERS.values()) for name in group}
    bare |= {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    bare |= {SWAPPED, FINISHED_REQUESTS, CONFIGURATION}
    return frozenset(prefix + name for prefix in ENGINE_PREFIXES for name in bare)


WIRE_NAMES = _engine_names() | GATEWAY_NAMES | {PROCESS_START} | {PROBE_PREFIX + name for name in PROBE_GAUGES.values()}
"""Names of all samples that are read, as they stand on the wire. Times of creation are not among them: the process
start says the same."""
