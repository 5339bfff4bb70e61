"""How long each trouble has lasted: one bad window is no reason to change a stack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.diagnosis import Diagnosis, Finding
from stack.layer import Layer
from stack.snapshot import FLEET

CYCLES_NEEDED = 12
"""A change is judged against the trouble it answers; before that has lasted some minutes nobody could tell."""
CYCLES_INSIDE = 2
"""Inside an envelope, whose moves are small and judged as a whole."""
MOST_CYCLES = 16
"""So that a trouble that lasted for hours is over soon after it is."""

Trouble: TypeAlias = tuple[str, str]
"""What it is, and its target."""


@dataclass(frozen=True)
class Persistence:
    """Cycles in which a trouble was seen less those since in which it was not, never below 0.

    Bursts come and go, so a quiet cycle takes one back and not all.
    """

    cycles: Mapping[Trouble, int] = field(default_factory=dict)

    def after(self, diagnosis: Diagnosis) -> "Persistence":
        """The same one cycle later."""
        seen = {trouble_of(finding) for finding in diagnosis.problems}
        grown = {key: min(MOST_CYCLES, self._before(key) + 1) for key in seen}
        waned = {key: n - 1 for key, n in self.cycles.items() if n > 1 and not any(_overlap(key, one) for one in seen)}
        return Persistence(grown | waned)

    def holds(self, finding: Finding, *, inside: bool = False) -> bool:
        """Whether `finding` has lasted long enough to act on, inside an envelope or without one."""
        return self.cycles.get(trouble_of(finding), 0) >= (CYCLES_INSIDE if inside else CYCLES_NEEDED)

    def lasting(self, findings: Iterable[Finding], *, inside: bool = False) -> tuple[Finding, ...]:
        """Those of `findings` that hold."""
        return tuple(finding for finding in findings if self.holds(finding, inside=inside))

    def _before(self, trouble: Trouble) -> int:
        """The most it had on a target that overlaps."""
        return max((n for key, n in self.cycles.items() if _overlap(key, trouble)), default=0)


def trouble_of(finding: Finding) -> Trouble:
    """The cause, but for one replica that is behind the others: whether that is told as hot or slow may change."""
    behind = finding.layer is Layer.ROUTING and finding.target != FLEET
    return str(finding.layer) if behind else finding.cause, finding.target


def _overlap(one: Trouble, other: Trouble) -> bool:
    """Whether both are the same, with the fleet overlapping each of its replicas."""
    return one[0] == other[0] and (one[1] == other[1] or FLEET in (one[1], other[1]))
