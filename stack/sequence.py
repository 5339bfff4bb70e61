"""Whether files given as scrapes in time order can be that: the same servers, none restarted, time not going back."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from stack.errors import InputError
from stack.histogram import TOLERANCE
from stack.reading import Reading, View
from stack.setting import Value

STARTS = ("started_s", "gateway_started_s")
SAME_START_S = 1.0
IDENTITY = ("model_name", "block_size", "num_gpu_blocks", "cache_dtype", "enable_prefix_caching")
"""Configuration that one process never changes."""

Scrape = Sequence[Reading]


def check_sequence(scrapes: Sequence[Scrape]) -> list[str]:
    """Check each scrape against the one before it; each holds the readings of one file.

    Returns:
        Warnings about replicas that are in some files only.

    Raises:
        InputError: the files are of different servers, out of order, or a server restarted in between.
    """
    warnings: list[str] = []
    for before, after in pairwise(scrapes):
        early, late = _by_replica(before), _by_replica(after)
        first, second = before[0].origin, after[0].origin
        if not early.keys() & late.keys():
            raise InputError(
                f"{second}: holds {_listed(late)}, but {first} holds {_listed(early)}; expected scrapes of the same "
                "servers in time order"
            )
        warnings += [f"{name} is in {first} or {second} only" for name, _ in sorted(early.keys() ^ late.keys())]
        for key in early.keys() & late.keys():
            _check_pair(early[key], late[key])
    return warnings


def _by_replica(scrape: Scrape) -> Mapping[tuple[str, View], Reading]:
    return {(reading.replica, reading.view): reading for reading in scrape}


def _listed(replicas: Iterable[tuple[str, View]]) -> str:
    return ", ".join(sorted({name for name, _ in replicas}))


def _check_pair(before: Reading, after: Reading) -> None:
    where = f"{after.origin}: {after.replica}"
    for key in STARTS:
        early, late = _number(before.configuration.get(key)), _number(after.configuration.get(key))
        if early is not None and late is not None and abs(early - late) > SAME_START_S:
            raise InputError(
                f"{where} started at {late:.0f} s, in {before.origin} at {early:.0f} s; expected one process: the "
                "files are of different servers, or it restarted in between"
            )
    for key in IDENTITY:
        if key in before.configuration and key in after.configuration:
            old, new = before.configuration[key], after.configuration[key]
            if old != new:
                raise InputError(
                    f"{where} has {key} {new}, in {before.origin} {old}; the files are of different servers"
                )
    went_down = _went_down(before, after)
    if went_down is not None:
        name, old_count, new_count = went_down
        raise InputError(
            f"{where}: {name} went down from {old_count:g} in {before.origin} to {new_count:g}; expected files in time "
            "order and no restart in between"
        )


def _went_down(before: Reading, after: Reading) -> tuple[str, float, float] | None:
    counts: list[tuple[str, float, float]] = [
        (counter, value, after.counters[counter])
        for counter, value in before.counters.items()
        if counter in after.counters
    ]
    counts += [
        (f"the count of {name}", histogram.count, after.histograms[name].count)
        for name, histogram in before.histograms.items()
        if name in after.histograms
    ]
    return next((found for found in counts if found[2] < found[1] - TOLERANCE), None)


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
