"""Which engine generation a row was measured on, and which generation stands in for one that was never fitted."""

import re
from collections.abc import Iterable

UNVERSIONED = "vllm-unversioned"
"""Rows of an engine whose version is not published."""
ASYNC_SINCE = (0, 14)
"""First vLLM version that schedules asynchronously by default."""

_VERSION = re.compile(r"(\d+)\.(\d+)")


def generation_of(engine: str) -> str:
    """A name such as vllm-0.12 from how a row words its engine."""
    found = _VERSION.search(engine)
    return f"vllm-{found[1]}.{found[2]}" if found else UNVERSIONED


def version_of(generation: str) -> tuple[int, int] | None:
    """Major and minor version, None for the unversioned."""
    found = _VERSION.search(generation)
    return (int(found[1]), int(found[2])) if found else None


def schedules_asynchronously(generation: str) -> bool:
    """Whether the engine schedules one step ahead by default; the unversioned are taken for recent."""
    version = version_of(generation)
    return version is None or version >= ASYNC_SINCE


def by_nearness(generation: str, known: Iterable[str]) -> list[str]:
    """Generations by the distance of their version, the same one first, the newer one of two equally far first.

    The unversioned are taken for as new as the newest that is known.
    """
    names = list(known)
    newest = max((_place(name) for name in (*names, generation) if version_of(name)), default=0.0)
    own = _place(generation, newest)
    return sorted(names, key=lambda name: (name != generation, abs(_place(name, newest) - own), -_place(name), name))


def _place(generation: str, newest: float = 0.0) -> float:
    version = version_of(generation)
    return version[0] * 100.0 + version[1] if version else newest
