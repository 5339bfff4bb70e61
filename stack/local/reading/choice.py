"""Which source a target's window comes from: Prometheus where it has it, else the scrapes of our own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stack.reading import GATEWAY, Reading, View

STALE_INTERVALS, STALE_MIN_S = 4.0, 6.0


def stale_after_s(interval_s: float) -> float:
    """Age beyond which a target counts as silent: four scrapes missed, or a long pause of a busy engine."""
    return max(STALE_MIN_S, STALE_INTERVALS * interval_s)


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes:
        readings: of all targets that are not silent.
        warnings: per target whose window is not Prometheus' or that is silent, one line.
        silent: targets without a fresh reading in any source.
    """

    readings: tuple[Reading, ...]
    warnings: tuple[str, ...]
    silent: tuple[str, ...]


@dataclass(frozen=True)
class _Window:
    """One target's readings in one source, in time order."""

    readings: Sequence[Reading] = ()

    @property
    def newest_s(self) -> float:
        return max((one.time_s or 0.0 for one in self.readings), default=0.0)

    @property
    def span_s(self) -> float:
        return self.newest_s - min((one.time_s or 0.0 for one in self.readings), default=0.0)

    def is_fresh(self, now_s: float, limit_s: float) -> bool:
        return bool(self.readings) and now_s - self.newest_s <= limit_s


def chosen(
    past: Iterable[Reading] | None,
    own: Iterable[Reading],
    problems: Mapping[str, str],
    targets: Sequence[str],
    *,
    now_s: float,
    interval_s: float,
) -> Choice:
    """Each target's readings from one source, as counts of two must not be mixed.

    Prometheus' are taken unless they are stale there, or shorter than our own by more than two scrapes. A target that
    is silent in both is left out: the last thing it said is no account of what it does now.

    Args:
        past: Prometheus' readings; None where it cannot be used.
        own: those of our own scrapes.
        problems: why our own newest scrape of a target failed.
        targets: the replicas and `GATEWAY`.
        now_s: the end of the window.
        interval_s: time between two scrapes.
    """
    theirs, ours = _by_target(past or ()), _by_target(own)
    limit_s = stale_after_s(interval_s)
    readings: list[Reading] = []
    warnings, silent = [], []
    for target in targets:
        there, here = theirs.get(target, _Window()), ours.get(target, _Window())
        fresh_there, fresh_here = there.is_fresh(now_s, limit_s), here.is_fresh(now_s, limit_s)
        if fresh_there and not (fresh_here and here.span_s > there.span_s + 2 * interval_s):
            readings += there.readings
        elif fresh_here:
            readings += here.readings
            warnings += [] if past is None else [f"{target}: {_lack(there, now_s, fresh_there)}; own scrapes were used"]
        else:
            silent.append(target)
            newest_s = max(there.newest_s, here.newest_s)
            warnings.append(f"{target}: {_silence(newest_s, now_s)} ({problems.get(target, 'no sample')})")
    return Choice(tuple(readings), tuple(warnings), tuple(silent))


def _by_target(readings: Iterable[Reading]) -> dict[str, _Window]:
    found: dict[str, list[Reading]] = {}
    for reading in readings:
        found.setdefault(target_of(reading), []).append(reading)
    return {name: _Window(held) for name, held in found.items()}


def target_of(reading: Reading) -> str:
    """Whose answer a reading stood in. An engine of several in one replica is called REPLICA/INDEX."""
    return GATEWAY if reading.view is View.GATEWAY else reading.replica.partition("/")[0]


def _lack(window: _Window, now_s: float, fresh: bool) -> str:
    if not window.readings:
        return "Prometheus has no sample of it"
    if not fresh:
        return f"its newest sample in Prometheus is {now_s - window.newest_s:.0f} s old"
    return f"Prometheus has only {window.span_s:.0f} s of it"


def _silence(newest_s: float, now_s: float) -> str:
    since = f"for {now_s - newest_s:.0f} s" if newest_s else "in the whole window"
    return f"no answer {since}; its facts are missing"
