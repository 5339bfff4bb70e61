"""A stack whose every text a test can choose: metric pages and logs go through the real parsers, writes are kept.

Three replicas run 16 of 16 allowed requests each while 32 wait and KV blocks are free: raising a cap is right.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from stack.engine_log import readings_in_log
from stack.errors import StackError, UnknownSettingError
from stack.exposition import readings_in
from stack.local.reading.choice import chosen
from stack.reading import GATEWAY, Reading, View
from stack.setting import Value
from stack.snapshot import FLEET, Snapshot
from stack.window import snapshot_of

START_S = 1_700_000_000.0
INVENTORY = ("r0", "r1", "r2")
RATE_PER_S = 4.0
STEP_S = 30.0
PLAIN_LOG = (
    "INFO 07-24 09:55:30 [loggers.py:122] Engine 000: Avg prompt throughput: 10.0 tokens/s, "
    "Avg generation throughput: 10.0 tokens/s, Running: 16 reqs, Waiting: 32 reqs, GPU KV cache usage: 30.0%"
)
SETTINGS_HELD: Mapping[str, Mapping[str, Value]] = {
    "running_request_cap": dict.fromkeys(INVENTORY, 16.0),
    "routing_weight": dict.fromkeys(INVENTORY, 100.0),
    "replica_state": dict.fromkeys(INVENTORY, "ready"),
    "usable_kv_blocks_ratio": dict.fromkeys(INVENTORY, 1.0),
    "execution_profile": dict.fromkeys(INVENTORY, "default"),
    "worker_generation": dict.fromkeys(INVENTORY, 0.0),
    "queue_limit_requests": {FLEET: 1_000_000.0},
    "routing_policy": {FLEET: "round_robin"},
}


@dataclass(frozen=True)
class Texts:
    """Every place where somebody else's text stands on the pages of r0 and of the gateway.

    Attributes:
        label: of a series that counts for nothing, and of one that is not a number.
        help: of a metric.
        model: the served model's name.
        log: an out-of-memory line in the engine's log.
        server: a server that the gateway lists beside ours.
        source: the file or address the pages came from.
        error: what a write is answered with; empty where it works.
    """

    label: str = ""
    help: str = ""
    model: str = "smol"
    log: str = ""
    server: str = ""
    source: str = "page"
    error: str = ""


@dataclass(frozen=True)
class Write:
    """One write that reached the stack."""

    time_s: float
    setting: str
    target: str
    before: Value
    value: Value


@dataclass
class WrittenStack:
    """Reader, control and clock in one, as a test holds them."""

    texts: Texts = field(default_factory=Texts)
    writes: list[Write] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._now_s = START_S
        self.held = {name: dict(values) for name, values in SETTINGS_HELD.items()}

    def now_s(self) -> float:
        return self._now_s

    def steady_s(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += max(0.0, seconds)

    def snapshot(self, window_s: float) -> Snapshot:
        newest_s = self._now_s - START_S
        own = [
            one
            for age in range(int(window_s // STEP_S), -1, -1)
            for one in _scrape(newest_s - age * STEP_S, self.texts)
        ]
        targets = (*INVENTORY, GATEWAY)
        choice = chosen(None, own, {}, targets, now_s=self._now_s, interval_s=STEP_S)
        ours = [one for one in choice.readings if one.view is not View.GATEWAY or one.replica in targets]
        return snapshot_of(ours, window_s=window_s, now_s=self._now_s, settings=self.held)

    def read(self, setting: str, target: str) -> Value:
        try:
            return self.held[setting][target]
        except KeyError as error:
            raise UnknownSettingError(f"no {setting} of {target}") from error

    def write(self, setting: str, target: str, value: Value) -> Value:
        before = self.read(setting, target)
        if self.texts.error:
            raise StackError(f"the stack said: {self.texts.error}")
        self.writes.append(Write(self._now_s, setting, target, before, value))
        self.held[setting][target] = value
        return value


@cache
def _scrape(at_s: float, texts: Texts) -> tuple[Reading, ...]:
    """All pages of one moment."""
    found: list[Reading] = []
    for name in INVENTORY:
        page = _engine_page(at_s, texts if name == "r0" else Texts())
        found += _parsed(page, texts.source if name == "r0" else "page", START_S + at_s, name)
    found += _parsed(_gateway_page(at_s, texts.server), "page", START_S + at_s, None)
    if texts.log:
        warned = readings_in_log(f"ERROR CUDA out of memory: {texts.log}\n{PLAIN_LOG}\n", texts.source)[-1].warnings
        found[0] = replace(found[0], warnings=(*found[0].warnings, *warned))
    return tuple(found)


@cache
def _parsed(page: str, source: str, time_s: float, name: str | None) -> list[Reading]:
    return readings_in(page, source, time_s=time_s, replica=name, strict=False)


def _engine_page(at_s: float, texts: Texts) -> str:
    served = (3600.0 + at_s) * RATE_PER_S
    model = _escaped(texts.model)
    lines = [
        f"# HELP vllm:num_requests_running {texts.help.splitlines()[0] if texts.help else 'Running requests.'}",
        f'vllm:num_requests_running{{model_name="{model}"}} 16',
        f'vllm:num_requests_waiting{{model_name="{model}"}} 32',
        f'vllm:kv_cache_usage_perc{{model_name="{model}"}} 0.3',
        f'vllm:num_preemptions_total{{model_name="{model}"}} 0',
        f'vllm:prompt_tokens_total{{model_name="{model}"}} {served * 900}',
        f'vllm:generation_tokens_total{{model_name="{model}"}} {served * 100}',
        f'vllm:request_success_total{{model_name="{model}",finished_reason="stop"}} {served}',
        f'vllm:lora_requests_info{{running_lora_adapters="{model}"}} 1',
        *_histogram("time_to_first_token_seconds", model, served, 3.0, ("1.0", "2.5", "5.0")),
        *_histogram("inter_token_latency_seconds", model, served * 100, 0.02, ("0.01", "0.025", "0.05")),
        *_histogram("e2e_request_latency_seconds", model, served, 5.0, ("2.5", "10.0", "20.0")),
        *_histogram("request_prompt_tokens", model, served, 900.0, ("500", "1000", "2000")),
    ]
    if texts.label:
        label = _escaped(texts.label)
        lines.append(f'vllm:request_success_total{{model_name="{model}",finished_reason="{label}"}} 0')
        lines.append(f'vllm:kv_cache_usage_perc{{model_name="{model}",pod="{label}"}} NaN')
    return "\n".join(lines) + "\n"


def _gateway_page(at_s: float, server: str) -> str:
    arrived = (3600.0 + at_s) * RATE_PER_S
    lines = []
    for name in (*INVENTORY, *([server] if server else [])):
        labels = f'proxy="pool",server="{_escaped(name)}"'
        lines += [
            f'haproxy_server_status{{{labels},state="UP"}} 1',
            f"haproxy_server_weight{{{labels}}} 100",
            f"haproxy_server_current_sessions{{{labels}}} 48",
            f"haproxy_server_current_queue{{{labels}}} 0",
            f"haproxy_server_sessions_total{{{labels}}} {arrived}",
        ]
    lines.append(f'haproxy_frontend_http_requests_total{{proxy="users"}} {arrived * len(INVENTORY)}')
    return "\n".join(lines) + "\n"


def _histogram(name: str, model: str, count: float, mean: float, bounds: tuple[str, ...]) -> list[str]:
    """All observations lie in the bucket that holds the mean."""
    labels = f'model_name="{model}"'
    told = [f'vllm:{name}_bucket{{{labels},le="{b}"}} {count if float(b) >= mean else 0.0}' for b in bounds]
    tail = [f'vllm:{name}_bucket{{{labels},le="+Inf"}} {count}', f"vllm:{name}_sum{{{labels}}} {count * mean}"]
    return [*told, *tail, f"vllm:{name}_count{{{labels}}} {count}"]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
