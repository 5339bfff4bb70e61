"""Findings and the diagnosis they make: claims with evidence, ranked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stack.layer import Layer
from stack.snapshot import FLEET, Missing

HEALTHY_BELOW = 0.3
"""Severity under which a finding is context, not a problem: it is shown but never acted on."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One claim about one layer.

    Attributes:
        layer: where the bottleneck sits.
        cause: code of the claim, snake_case, stable across releases.
        claim: the same in one sentence with its numbers, for people.
        severity: 0 (context) to 1 (requests are failing their SLO now).
        confidence: 0 to 1, lowered by missing or old evidence.
        tunable: whether a setting of ours can help.
        target: the replica concerned, or the fleet.
        evidence: named numbers behind the claim, units in the names.
        advice: what to do or whom to ask when it is not tunable; empty otherwise.
    """

    layer: Layer
    cause: str
    claim: str
    severity: float
    confidence: float
    tunable: bool
    target: str = FLEET
    evidence: Mapping[str, float | str | None] = field(default_factory=dict)
    advice: str = ""

    @property
    def weight(self) -> float:
        """Rank: severity times confidence."""
        return self.severity * self.confidence


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, best explanation first.

    Attributes:
        findings: ranked by severity times confidence, best first.
        missing: what could not be read and what that costs.
        window_s: as of the snapshot.
        time_s: as of the snapshot.
    """

    findings: tuple[Finding, ...]
    missing: tuple[Missing, ...] = ()
    window_s: float | None = None
    time_s: float | None = None

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that matter, best first."""
        return tuple(f for f in self.findings if f.severity >= HEALTHY_BELOW)

    @property
    def healthy(self) -> bool:
        """Whether nothing needs attention."""
        return not self.problems


def rank(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Best explanation first: by severity times confidence, ties by layer order so that the result is stable."""
    order = list(Layer)
    return tuple(sorted(findings, key=lambda f: (-f.weight, order.index(f.layer), f.cause, f.target)))
