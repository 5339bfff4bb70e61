"""The shipped policy once more, in literal numbers, judged by what was written to the stack and by how the stack was.

Nothing here asks the gate, the catalogue, the policy or the journal: it watches writes, endings and the true state.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from hostile_world import RUNNING, Truth
from scripted_stack import REPLICAS

from stack.setting import Value

FLEET = "fleet"
NO_LIMIT = 1_000_000.0
RANGES: dict[str, tuple[float, float]] = {
    "routing_weight": (0, 256),
    "replica_concurrency_cap": (1, NO_LIMIT),
    "running_request_cap": (1, 4096),
    "tokens_per_step": (64, 32768),
    "usable_kv_blocks_ratio": (0.02, 1),
    "deadline_shedding_ratio": (0.1, NO_LIMIT),
    "worker_generation": (0, NO_LIMIT),
}
CHOICES = {
    "replica_state": {"ready", "drain"},
    "routing_policy": {"round_robin", "least_connections", "least_outstanding_tokens", "session_hash", "prefix_aware"},
    "execution_profile": {"default", "eager", "no_speculation", "fp8_kv"},
}
LONGEST_STEP = {
    "routing_weight": (0.5, 10.0),
    "replica_concurrency_cap": (0.5, 1.0),
    "running_request_cap": (1.0, 16.0),
    "tokens_per_step": (1.0, 1.0),
    "usable_kv_blocks_ratio": (1.0, 0.5),
}
"""The larger of a share of the value and an absolute step."""
BY_RESTART = {"execution_profile", "worker_generation"}
POOL_WIDE = {"routing_policy", "deadline_shedding_ratio"}
FRACTIONS = {"usable_kv_blocks_ratio", "deadline_shedding_ratio"}
ALL_AT_ONCE = {"replica_concurrency_cap", "running_request_cap", "tokens_per_step", "usable_kv_blocks_ratio"}
SAFER_BELOW = {"routing_weight", "replica_concurrency_cap", "running_request_cap", "deadline_shedding_ratio"}
"""Lowering these lowers the risk, so that it need not wait."""
FILLS_MEMORY_ABOVE = {"replica_concurrency_cap", "running_request_cap"}
SLOWS_ABOVE = {"replica_concurrency_cap", "running_request_cap", "tokens_per_step", "deadline_shedding_ratio"}
TTFT_LIMIT_S = 1.0 + 500 * 0.0001


@dataclass
class Change:
    """One change as it was seen at the stack."""

    time_s: float
    setting: str
    values: dict[str, tuple[Value, Value]]
    truth: Truth
    weights: dict[str, float]
    states: dict[str, Value]
    by_person: bool
    tainted: bool
    requested_by: str
    gain_promised: bool
    ended_s: float | None = None
    ending: str = ""

    @property
    def before(self) -> Value:
        return next(iter(self.values.values()))[0]

    @property
    def after(self) -> Value:
        return next(iter(self.values.values()))[1]

    @property
    def up(self) -> int:
        if isinstance(self.before, str) or isinstance(self.after, str):
            return 0
        return (self.after > self.before) - (self.after < self.before)

    @property
    def takes_away(self) -> bool:
        gone = (self.setting, self.after) in {("replica_state", "drain"), ("routing_weight", 0.0)}
        return gone or self.setting in BY_RESTART

    @property
    def lost_anyway(self) -> bool:
        return set(self.values) <= self.truth.down | self.truth.stuck

    @property
    def safer(self) -> bool:
        return (self.setting in SAFER_BELOW and self.up < 0) or (self.takes_away and self.lost_anyway)

    def touches(self, other: "Change") -> bool:
        return self.setting == other.setting and bool(set(self.values) & set(other.values))


@dataclass
class WrittenPolicy:
    """Collects breaches, one line each."""

    changes: list[Change] = field(default_factory=list)
    writes_s: list[tuple[float, str, str]] = field(default_factory=list)
    hands: dict[tuple[str, str], float] = field(default_factory=dict)
    """When somebody else last wrote, by setting and target."""
    halted: bool = False
    blind: bool = False
    clock_set: bool = False
    """Within the last five minutes, by a clock that nobody sets."""
    breaches: list[str] = field(default_factory=list)

    def judge(self, change: Change) -> None:
        """Look at a change at the moment of its writes, before they are counted."""
        for name in (
            "form",
            "step",
            "sight",
            "pace",
            "direction",
            "authority",
            "left_over",
            "limit",
            "memory",
            "latency",
            "others",
        ):
            problem = getattr(self, f"_{name}")(change)
            if problem:
                self.breaches.append(f"{name}: {problem}: {change}")
        self.changes.append(change)

    def wrote(self, time_s: float, setting: str, target: str) -> None:
        """Ours, undos included."""
        self.writes_s.append((time_s, setting, target))
        self.hands.pop((setting, target), None)

    def by_hand(self, time_s: float, setting: str, target: str) -> None:
        """Somebody else's write."""
        self.hands[setting, target] = time_s

    def _form(self, c: Change) -> str | None:
        targets = set(c.values)
        if targets != ({FLEET} if c.setting in POOL_WIDE else targets) or not targets <= {*REPLICAS, FLEET}:
            return "a target that does not exist"
        if len(targets) not in (1, len(REPLICAS)) or len(set(c.values.values())) != 1:
            return "neither one target nor one value for all"
        if c.setting in CHOICES:
            return None if c.after in CHOICES[c.setting] else "no such choice"
        if c.setting not in RANGES or type(c.after) not in (int, float) or not math.isfinite(c.after):
            return "no such setting, or no number"
        low, high = RANGES[c.setting]
        whole = c.setting in FRACTIONS or c.after == math.floor(c.after)
        return None if whole and low <= c.after <= high else "out of range"

    def _step(self, c: Change) -> str | None:
        if c.setting not in LONGEST_STEP or c.before == NO_LIMIT:
            return None
        share, least = LONGEST_STEP[c.setting]
        return None if abs(c.after - c.before) <= max(share * c.before, least) + 1e-9 else "too long a step"

    def _sight(self, _c: Change) -> str | None:
        if self.halted:
            return "changes were halted"
        if self.clock_set:
            return "the clock had been set"
        return "the metrics were blind" if self.blind else None

    def _pace(self, c: Change) -> str | None:
        trial = [one for one in self.changes if one.ended_s is None]
        if any(c.time_s - one.time_s < 60 for one in trial):
            return "another one settles"
        if len(trial) >= 3 or (trial and c.setting in BY_RESTART):
            return f"{len(trial)} are on trial"
        kind = c.setting in BY_RESTART
        hour = [one for one in self.changes if c.time_s - one.time_s <= 3600 and (one.setting in BY_RESTART) == kind]
        if len(hour) >= (1 if kind else 6):
            return f"{len(hour)} in the hour before"
        if sum(c.time_s - one.time_s <= 86400 for one in self.changes) >= 20:
            return "twenty in the day before"
        return self._wait(c)

    def _wait(self, c: Change) -> str | None:
        wait_s = 900 if c.setting in BY_RESTART else 30 if c.safer else 120
        for time_s, setting, target in self.writes_s:
            if c.time_s - time_s < 30 and not c.safer:
                return "within the floor after a write"
            if setting == c.setting and target in c.values and c.time_s - time_s < wait_s:
                return "within the cooldown of its setting"
        return None

    def _direction(self, c: Change) -> str | None:
        if any(
            one.ending == "hard stop"
            and one.touches(c)
            and one.after == c.after
            and c.time_s - (one.ended_s or 0) < 86400
            for one in self.changes
        ):
            return "a value that a hard stop had undone"
        stands = (one for one in self.changes if one.touches(c) and one.ending in ("", "kept"))
        back = [one for one in stands if one.up * c.up < 0 and c.time_s - one.time_s < 600]
        return "taken back within ten minutes" if back and not c.safer else None

    def _authority(self, c: Change) -> str | None:
        undone = sum(
            one.ending in ("undone", "hard stop") and c.time_s - (one.ended_s or 0) <= 3600 for one in self.changes
        )
        if not c.by_person and (c.setting in BY_RESTART or undone >= 2):
            return "nobody was asked"
        if c.setting in BY_RESTART and c.tainted:
            return "a model chose a restart"
        if c.setting in BY_RESTART and c.requested_by == "agent" and not self._seen_twice(c):
            return "a restart on the word of one source"
        everywhere = len(c.values) > 1
        if everywhere and c.setting not in ALL_AT_ONCE and not self._kept(c.setting):
            return "all replicas at once at the first try"
        return None

    def _kept(self, setting: str) -> bool:
        return any(one.setting == setting and one.ending == "kept" for one in self.changes)

    def _seen_twice(self, c: Change) -> bool:
        (target,) = c.values
        engine = target in c.truth.fragmented | c.truth.stuck
        device = target in c.truth.fragmented or c.truth.free_bytes[target] < 2 * 2.0**30
        return engine + device + (target in c.truth.down) >= 2

    def _left_over(self, c: Change) -> str | None:
        serving = {r for r in c.truth.healthy if c.states[r] == "ready" and c.weights[r] > 0}
        targets = set(c.values)
        if not c.takes_away:
            return None if self._moved(c) <= 0.25 + 1e-9 or self._kept(c.setting) else "too much traffic moved at first"
        if targets & serving and len(serving - targets) < 2:
            return "fewer than two healthy replicas left"
        if c.setting in BY_RESTART:
            quiet = c.truth.waiting == 0 and len(targets) == 1 and sum(c.truth.kv_ratio[r] for r in REPLICAS) / 3 <= 0.3
            return None if quiet else "a restart that was not at low traffic"
        return "a sound replica drained over a queue" if c.truth.waiting > 0 and not c.lost_anyway else None

    def _limit(self, c: Change) -> str | None:
        """Half of what runs goes on, and where the limit holds that down, half of what the first step left."""
        if c.setting not in FILLS_MEMORY_ABOVE or c.up >= 0:
            return None
        lowered = [one for one in self.changes if one.touches(c) and one.up < 0 and one.ending in ("", "kept")]
        left = [one.after for one in lowered if c.time_s - one.time_s < 3600]
        runs = 0.0 if set(c.values) <= c.truth.down else RUNNING
        through = runs if runs < 0.8 * c.before else max([c.before, *left])
        return "too low a limit" if c.after < max(4.0, through / 2) else None

    def _moved(self, c: Change) -> float:
        if c.setting != "routing_weight":
            return 0.0
        now = {r: w for r, w in c.weights.items() if c.states[r] == "ready" or r in c.values}
        then = {r: float(c.values[r][1]) if r in c.values else w for r, w in now.items()}
        return sum(abs(then[r] / sum(then.values()) - now[r] / sum(now.values())) for r in now) / 2

    def _memory(self, c: Change) -> str | None:
        if c.setting in FILLS_MEMORY_ABOVE and c.up > 0:
            concerned: Iterable[str] = c.values
        elif c.takes_away and not set(c.values) <= c.truth.down:
            concerned = [r for r in REPLICAS if r not in c.values]
        else:
            return None
        up = [r for r in concerned if r not in c.truth.down]
        if any(c.truth.kv_ratio[r] > 0.85 for r in up):
            return "KV blocks were full"
        return "device memory was short" if any(c.truth.free_bytes[r] < 2 * 2.0**30 for r in up) else None

    def _latency(self, c: Change) -> str | None:
        hot = c.truth.ttft_p99_s > 0.9 * TTFT_LIMIT_S
        slows = c.setting in SLOWS_ABOVE and c.up > 0
        relieves = c.setting in FILLS_MEMORY_ABOVE and c.truth.waiting > 0
        return "slower, near the limit" if hot and slows and not relieves and not c.gain_promised else None

    def _others(self, c: Change) -> str | None:
        """Somebody else changed what we had set within the last half hour."""
        for place, hand_s in self.hands.items():
            ours = [time_s for time_s, *where in self.writes_s if tuple(where) == place]
            if ours and hand_s > max(ours) and c.time_s - max(ours) <= 1800:
                return f"somebody else is at {place}"
        return None
