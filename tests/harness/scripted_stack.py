"""A stack in memory for the seam: values per setting and target, recorded writes, scripted faults and metrics."""

from collections.abc import Callable, Mapping

from harness.action import Action
from stack.errors import ReadBackError, RefusedError, StackError, UnknownSettingError, UnreachableError
from stack.layer import Layer
from stack.setting import Value
from stack.snapshot import Fact, Signal, Snapshot

REPLICAS = ("r0", "r1", "r2", "r3")


class Crash(BaseException):
    """The process dies here: nothing in the code under test may catch it."""


class ManualClock:
    """Time passes by sleeping; who assigns `time_s` sets the clock."""

    def __init__(self, now_s: float = 10_000.0) -> None:
        self.time_s = now_s
        self.slept_s = 0.0

    def now_s(self) -> float:
        return self.time_s

    def steady_s(self) -> float:
        return self.slept_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds
        self.slept_s += seconds


class ScriptedStack:
    """Control and reader. `latency(values, time_s)` gives the fleet's mean token time per replica."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.values: dict[tuple[str, str], Value] = {}
        for replica in REPLICAS:
            self.values["routing_weight", replica] = 100.0
            self.values["running_request_cap", replica] = 16.0
        self.writes: list[tuple[str, str, Value]] = []
        self.before_write: Callable[[], None] = lambda: None
        self.on_write: Callable[[str, str, Value], None] = lambda setting, target, value: None
        self.after_write: Callable[[], None] = lambda: None
        self.unreachable = False
        self.itl_s: Callable[[Mapping[tuple[str, str], Value], float, str], float] = lambda values, time_s, replica: (
            0.02
        )
        self.extra: dict[Signal, float] = {}
        self.noise = 0

    def read(self, setting: str, target: str) -> Value:
        if self.unreachable:
            raise UnreachableError("scripted stack does not answer")
        if (setting, target) not in self.values:
            raise UnknownSettingError(f"no {setting} on {target}")
        return self.values[setting, target]

    def write(self, setting: str, target: str, value: Value) -> Value:
        self.before_write()
        self.writes.append((setting, target, value))
        self.on_write(setting, target, value)
        self.values[setting, target] = value
        self.after_write()
        return value

    def snapshot(self, window_s: float) -> Snapshot:
        if self.unreachable:
            raise UnreachableError("scripted stack does not answer")
        time_s = self.clock.now_s()
        replicas = {r: self._facts(self.itl_s(self.values, time_s, r), 60.0, r) for r in REPLICAS}
        mean = sum(self.itl_s(self.values, time_s, r) for r in REPLICAS) / len(REPLICAS)
        settings: dict[str, dict[str, Value]] = {}
        for (setting, target), value in self.values.items():
            settings.setdefault(setting, {})[target] = value
        fleet = self._facts(mean, 240.0, "fleet") | {s: Fact(v, age_s=1.0) for s, v in self.extra.items()}
        return Snapshot(time_s, window_s, 5, replicas, fleet, settings=settings)

    def _facts(self, itl_s: float, finished: float, name: str) -> dict[Signal, Fact]:
        # a small deterministic ripple, so that no two windows are quite the same
        self.noise = (self.noise * 1103515245 + 12345) % 2**31
        ripple = 1 + 0.02 * (self.noise / 2**31 - 0.5)
        values = {
            Signal.RUNNING: 8.0,
            Signal.WAITING: 0.0,
            Signal.FINISHED: finished,
            Signal.ARRIVED: finished,
            Signal.ERRORS: 0.0,
            Signal.GENERATION_TOKENS: finished * 100,
            Signal.PROMPT_TOKENS_MEAN: 500.0,
            Signal.OUTPUT_TOKENS_MEAN: 100.0,
            Signal.KV_USAGE_RATIO: 0.3,
            Signal.TTFT_MEAN_S: 0.2 * ripple,
            Signal.TTFT_P95_S: 0.4 * ripple,
            Signal.TTFT_P99_S: 0.5 * ripple,
            Signal.ITL_MEAN_S: itl_s * ripple,
            Signal.ITL_P99_S: 1.5 * itl_s * ripple,
            Signal.E2E_MEAN_S: itl_s * 100 * ripple,
            Signal.E2E_P99_S: itl_s * 150 * ripple,
        }
        return {signal: Fact(value, age_s=1.0) for signal, value in values.items()}


def weight_action(before: float = 100.0, after: float = 60.0, target: str = "r0") -> Action:
    return Action(
        setting="routing_weight",
        target=target,
        before=before,
        after=after,
        cause="slow_replica",
        layer=Layer.ROUTING,
        reason="r0 is slow",
    )


def cap_action(before: float = 16.0, after: float = 24.0, target: str = "r0") -> Action:
    return Action(
        setting="running_request_cap",
        target=target,
        before=before,
        after=after,
        cause="cap_too_small",
        layer=Layer.BATCHING,
        reason="requests wait while KV is free",
    )


def failing(error: type[StackError], held: Value | None = None) -> Callable[[str, str, Value], None]:
    """A write that fails before it takes effect."""

    def fail(setting: str, target: str, value: Value) -> None:
        if error in (RefusedError, ReadBackError):
            raise error(f"{setting} refused", held)  # type: ignore[call-arg]
        raise error(f"{setting} not answered")

    return fail
