"""Faults as data: what can go wrong in a simulated stack, and when."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from stack.errors import InputError
from stack.layer import Layer


class Nature(StrEnum):
    """Where a fault sits, hence who could see it."""

    SETTING = "setting"
    """Someone has set a bad value: visible in the settings, and setting it back is the remedy."""
    HIDDEN = "hidden"
    """Hardware, software or clients: visible only by its effects."""
    TRAFFIC = "traffic"
    """Unusual requests: visible in arrivals and lengths."""
    METRICS = "metrics"
    """The stack works, its metrics do not."""


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault.

    Attributes:
        layer: where the bottleneck then is.
        tunable: whether settings can relieve it.
    """

    summary: str
    layer: Layer
    nature: Nature
    tunable: bool = True


@dataclass(frozen=True)
class Fault:
    """A fault and its start.

    Attributes:
        at_s: seconds since the start of the run.
        replica: index of the replica it hits, for kinds that hit one; None lets the run's seed choose.
    """

    name: str
    at_s: float
    replica: int | None = None


FAULTS: Mapping[str, FaultKind] = MappingProxyType(
    {
        "slow_replica": FaultKind("one replica's steps take twice as long", Layer.ROUTING, Nature.HIDDEN),
        "lost_replica": FaultKind("one replica dies and stays away", Layer.ROUTING, Nature.HIDDEN),
        "hot_replica": FaultKind("clients pin a third of the traffic to one replica", Layer.ROUTING, Nature.HIDDEN),
        "weights_uneven": FaultKind("one replica's weight is set far above the others'", Layer.ROUTING, Nature.SETTING),
        "prefix_scatter": FaultKind("the routing policy is set to round robin", Layer.ROUTING, Nature.SETTING),
        "cap_too_small": FaultKind(
            "the running-request cap is set to a quarter of what the load needs", Layer.BATCHING, Nature.SETTING
        ),
        "cap_too_big": FaultKind(
            "few of the KV blocks are left and the cap is at its highest", Layer.CACHE, Nature.SETTING
        ),
        "kv_pool_small": FaultKind(
            "a quarter of the KV blocks that the load needs is left", Layer.CACHE, Nature.SETTING
        ),
        "prompt_timestamp": FaultKind(
            "a time stamp at the head of every prompt", Layer.CACHE, Nature.HIDDEN, tunable=False
        ),
        "long_prompt_flood": FaultKind("many very long prompts for five minutes", Layer.BATCHING, Nature.TRAFFIC),
        "batch_flood": FaultKind("a dump of batch requests beside interactive ones", Layer.BATCHING, Nature.TRAFFIC),
        "fragmentation": FaultKind("one worker's memory is fragmented and slows it", Layer.MEMORY, Nature.HIDDEN),
        "gpu_throttling": FaultKind(
            "all GPUs run at two thirds of their speed", Layer.EXTERNAL, Nature.HIDDEN, tunable=False
        ),
        "proxy_buffering": FaultKind(
            "a proxy holds answers back until they are whole", Layer.EXTERNAL, Nature.HIDDEN, tunable=False
        ),
        "stale_metrics": FaultKind(
            "every engine's metrics stand still", Layer.OBSERVABILITY, Nature.METRICS, tunable=False
        ),
        "missing_metrics": FaultKind(
            "one engine's metrics are gone", Layer.OBSERVABILITY, Nature.METRICS, tunable=False
        ),
        "nan_metrics": FaultKind("one engine's metrics are NaN", Layer.OBSERVABILITY, Nature.METRICS, tunable=False),
    }
)


def parse_fault(text: str) -> Fault:
    """The fault that `NAME@SECONDS` means; `NAME:REPLICA@SECONDS` names the replica by its index.

    Raises:
        InputError: unknown name, or the time or replica is not a number of at least 0.
    """
    name, at, when = text.partition("@")
    name, colon, replica = name.partition(":")
    if name not in FAULTS:
        raise InputError(f"no fault {name!r}; known faults are {', '.join(sorted(FAULTS))}")
    if not at:
        raise InputError(f"fault {text!r} has no time; expected {name}@SECONDS")
    if colon and not replica.isdecimal():
        raise InputError(f"fault {text!r}: the replica must be an index such as 0, not {replica!r}")
    return Fault(name, _seconds(text, when), int(replica) if colon else None)


def _seconds(text: str, when: str) -> float:
    try:
        at_s = float(when)
    except ValueError:
        at_s = math.nan
    if not (0 <= at_s < math.inf):
        raise InputError(f"fault {text!r}: the time must be a number of seconds of at least 0, not {when!r}")
    return at_s
