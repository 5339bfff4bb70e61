"""The gate's answer: allow, ask a person, or deny, with every rule that was checked."""

from dataclasses import dataclass
from enum import StrEnum


class Ruling(StrEnum):
    """Ordered from best to worst; the worst rule decides."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True)
class RuleResult:
    """One rule's answer, with its reason and numbers in words."""

    rule: str
    ruling: Ruling
    detail: str


@dataclass(frozen=True)
class Verdict:
    """All rules checked, and the worst of them."""

    rules: tuple[RuleResult, ...]

    @property
    def ruling(self) -> Ruling:
        """The worst ruling; deny when nothing was checked."""
        order = list(Ruling)
        return max((r.ruling for r in self.rules), key=order.index, default=Ruling.DENY)

    @property
    def hits(self) -> tuple[RuleResult, ...]:
        """The rules that did not simply allow, worst first."""
        order = list(Ruling)
        return tuple(
            sorted((r for r in self.rules if r.ruling is not Ruling.ALLOW), key=lambda r: -order.index(r.ruling))
        )
