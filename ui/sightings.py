"""What a run saw, cycle by cycle, put together: each problem once, with when and how often."""

from dataclasses import dataclass, field

from rich.console import Console

from agent.session import CycleReport, Session
from harness.diagnosis import Finding
from ui.report import Json, finding_json, plain


def tell_frozen(session: Session, console: Console) -> None:
    """Say it where changes are halted, since then everything is denied."""
    if session.frozen is not None:
        why = f"Changes are frozen: {session.frozen}. flashvector unfreeze allows them again."
        console.print(why, style="yellow", markup=False, highlight=False)


@dataclass
class Sighting:
    """One problem on one target.

    Attributes:
        worst: the finding when it was most severe.
        first_s, last_s: seconds since the run began.
    """

    worst: Finding
    first_s: float
    last_s: float
    cycles: int = 1


@dataclass
class Sightings:
    """Problems of a run, and how often its planner failed.

    Attributes:
        blind_reason: why nothing could be read in the last cycle that was blind.
    """

    _seen: dict[tuple[str, str], Sighting] = field(default_factory=dict)
    _failures: int = 0
    _last_failure: str = ""
    _blind: int = 0
    _cycles: int = 0
    blind_reason: str = ""

    @property
    def nothing(self) -> bool:
        """Whether no cycle could read anything."""
        return 0 < self._cycles == self._blind

    def add(self, report: CycleReport, elapsed_s: float) -> None:
        """Take in one cycle."""
        self._cycles += 1
        if report.blind:
            self._blind, self.blind_reason = self._blind + 1, report.blind
        if report.plan is not None and report.plan.degraded:
            self._failures, self._last_failure = self._failures + 1, report.plan.degraded
        for finding in report.diagnosis.problems:
            known = self._seen.get((finding.cause, finding.target))
            if known is None:
                self._seen[finding.cause, finding.target] = Sighting(finding, elapsed_s, elapsed_s)
                continue
            known.last_s, known.cycles = elapsed_s, known.cycles + 1
            known.worst = max(known.worst, finding, key=lambda one: one.severity)

    def lasting(self, least: int = 3) -> list[Sighting]:
        """Problems seen in at least that many cycles, the most frequent first."""
        return sorted((one for one in self._seen.values() if one.cycles >= least), key=lambda one: -one.cycles)

    def json(self) -> list[Json]:
        """`seen` of `run --json`."""
        return [
            {
                **finding_json(one.worst),
                "first_s": plain(one.first_s),
                "last_s": plain(one.last_s),
                "cycles": one.cycles,
            }
            for one in self._seen.values()
        ]

    def lines(self) -> list[str]:
        """The same for people; only what lasted."""
        told = [_line(one) for one in self.lasting()]
        if self._failures:
            told.append(
                f"The LLM failed in {self._failures} decisions, where search chose instead: {self._last_failure}"
            )
        if self._blind:
            told.append(f"Nothing could be read in {self._blind} cycles.")
        return told


def _line(one: Sighting) -> str:
    worst = one.worst
    reach = "" if worst.tunable else ", not tunable"
    where = f"{worst.layer} {worst.cause} on {worst.target}{reach}"
    return f"{one.first_s / 60:5.1f} min  seen for {one.cycles} cycles: {where}. {worst.claim} {worst.advice}".strip()
