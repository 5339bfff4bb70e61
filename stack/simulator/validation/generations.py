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


def nearest(generation: str, fitted: Iterable[str]) -> str | None:
    """The generation whose version is closest, the newer one of two; the unversioned count as the newest.

    Returns:
        None when there is none at all.
    """
    known = list(fitted)
    if generation in known or not known:
        return generation if known else None
    return min(known, key=lambda name: (abs(_place(name) - _place(generation)), -_place(name), name))


def _place(generation: str) -> float:
    version = version_of(generation)
    return version[0] * 100.0 + version[1] if version else 1e6
