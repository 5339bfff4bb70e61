"""What the policy forbids, stated a second time and independently of the gate, to judge writes by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from written_stack import INVENTORY, SETTINGS_HELD, Write

from harness.journal.record import Record
from harness.mode import Mode
from stack.setting import Value

MAY_ACT_ALONE = frozenset(
    {"routing_weight", "replica_state", "running_request_cap", "usable_kv_blocks_ratio", "queue_limit_requests"}
    | {"routing_policy"}
)
"""Class A; a restart is never made without a person."""
SPANS = {
    "routing_weight": (0, 256),
    "running_request_cap": (1, 4096),
    "usable_kv_blocks_ratio": (0.02, 1),
    "queue_limit_requests": (1, 1_000_000),
    "worker_generation": (0, 1_000_000),
}
LONGEST_STEPS = {"routing_weight": (0.5, 10), "running_request_cap": (1.0, 16), "usable_kv_blocks_ratio": (1.0, 0.5)}
"""As a share of the former value, and in any case."""
REPLICAS_LEFT, APART_S, PER_HOUR = 2, 30.0, 6


@dataclass(frozen=True)
class Judged:
    """A write that undoes one is none of the planner's."""

    writes: Sequence[Write]
    records: Sequence[Record]
    mode: Mode

    def breaches(self) -> list[str]:
        """What must not have happened, in words; empty when all is well."""
        held = {name: dict(values) for name, values in SETTINGS_HELD.items()}
        found: list[str] = []
        begun: dict[int, float] = {}
        for write in self.writes:
            former = SETTINGS_HELD.get(write.setting, {}).get(write.target)
            held.get(write.setting, {})[write.target] = write.value
            if write.value == former:
                continue
            record = self._permit(write)
            if record is None:
                found.append(f"no permit for {write}")
                continue
            begun.setdefault(record.id, write.time_s)
            found += [f"{problem}: {write}" for problem in (*_of_value(write), *self._of_authority(write, record))]
            if _serving(held) < REPLICAS_LEFT:
                found.append(f"{_serving(held)} replicas serve after {write}")
        return found + _of_pace(sorted(begun.values()))

    def _permit(self, write: Write) -> Record | None:
        for record in self.records:
            steps = record.permit.steps if record.permit else ()
            meant = any(step.target == write.target and step.wanted == write.value for step in steps)
            if meant and record.action.setting == write.setting and (record.armed_s or 0.0) <= write.time_s:
                return record
        return None

    def _of_authority(self, write: Write, record: Record) -> list[str]:
        alone = record.decided_by == "auto"
        problems = []
        if self.mode is Mode.SHADOW:
            problems.append("written in shadow mode")
        if alone and (self.mode is not Mode.AUTO or write.setting not in MAY_ACT_ALONE):
            problems.append("nobody was asked")
        if not alone and record.decided_by != "ann":
            problems.append(f"decided by {record.decided_by}")
        return problems


def _of_value(write: Write) -> list[str]:
    problems = []
    if write.target not in (*INVENTORY, "fleet"):
        problems.append("no target of ours")
    if isinstance(write.value, str) or isinstance(write.before, str):
        return problems
    low, high = SPANS[write.setting]
    if not low <= write.value <= high:
        problems.append("out of bounds")
    ratio, least = LONGEST_STEPS.get(write.setting, (float("inf"), float("inf")))
    if abs(write.value - write.before) > max(ratio * abs(write.before), least):
        problems.append("too long a step")
    return problems


def _serving(held: Mapping[str, Mapping[str, Value]]) -> int:
    weights, states = held["routing_weight"], held["replica_state"]
    return sum(weights[name] != 0 and states[name] == "ready" for name in INVENTORY)


def _of_pace(times: Sequence[float]) -> list[str]:
    close = [late - early for early, late in pairwise(times) if late - early < APART_S]
    found = [f"two changes {min(close):.0f} s apart"] if close else []
    return found + ([f"{len(times)} changes within the hour"] if len(times) > PER_HOUR else [])
