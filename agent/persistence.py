"""How many cycles in a row each problem has held: one bad window is no reason to change a stack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.diagnosis import Diagnosis, Finding
from stack.snapshot import FLEET

CYCLES_NEEDED = 8
"""A change is judged against the trouble it answers; before that has lasted some minutes nobody could tell."""


@dataclass(frozen=True)
class Persistence:
    """Consecutive cycles per problem, by cause and target."""

    cycles: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def after(self, diagnosis: Diagnosis) -> "Persistence":
        """The same one cycle later."""
        keys = {(finding.cause, finding.target) for finding in diagnosis.problems}
        return Persistence({key: self._before(*key) + 1 for key in keys})

    def holds(self, finding: Finding) -> bool:
        """Whether `finding` has lasted long enough to act on."""
        return self.cycles.get((finding.cause, finding.target), 0) >= CYCLES_NEEDED

    def lasting(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those of `findings` that hold."""
        return tuple(finding for finding in findings if self.holds(finding))

    def _before(self, cause: str, target: str) -> int:
        """The longest the cause has held on a target that overlaps: the fleet overlaps each of its replicas."""
        held = (n for (c, t), n in self.cycles.items() if c == cause and (t == target or FLEET in (t, target)))
        return max(held, default=0)
