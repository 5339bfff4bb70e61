"""KV pressure of one replica: how full, how many were preempted, and whether that is now or over."""

from dataclasses import dataclass
from statistics import median

from skills.replica import Replica
from stack.snapshot import Signal

FULL_RATIO = 0.85
"""The gate's watermark: above it the growth of running answers alone can fill the pool."""
RISING_RATIO = 0.05
"""A change of KV use within one window that is more than the coming and going of single requests."""
SMALLER_RATIO = 0.9
SAWTOOTH_RATIO, SAWTOOTH_SHARE = 0.6, 0.1
"""A pool that preempts one request in ten frees its blocks each time: between two of them it is less than full."""


@dataclass(frozen=True)
class Pressure:
    """What is known of a replica's KV pool.

    Attributes:
        usage_ratio, start_ratio, peak_ratio: at the end, at the start and at most; None when unknown.
        preemptions: in the window; None when the engine does not tell.
        preemptions_late: of those, in the second half; None with fewer than three scrapes.
        preempted_share: per request that ran in the window.
    """

    usage_ratio: float | None
    start_ratio: float | None
    peak_ratio: float | None
    preemptions: float | None
    preemptions_late: float | None
    preempted_share: float

    @property
    def now(self) -> bool:
        """Whether blocks are short at the end of the window, or requests are still being preempted."""
        if self.usage_ratio is not None and self.usage_ratio >= FULL_RATIO:
            return True
        if self.preemptions_late is not None:
            return self.preemptions_late > 0
        if self.usage_ratio is None:
            return bool(self.preemptions)
        return self.usage_ratio >= SAWTOOTH_RATIO and self.preempted_share >= SAWTOOTH_SHARE

    @property
    def seen(self) -> bool:
        """Whether there was any pressure within the window."""
        return self.now or bool(self.preemptions) or (self.peak_ratio or 0.0) >= FULL_RATIO

    @property
    def rising(self) -> bool:
        """Whether use grew over the window."""
        if self.usage_ratio is None or self.start_ratio is None:
            return False
        return self.usage_ratio - self.start_ratio >= RISING_RATIO


def pressure_of(replica: Replica) -> Pressure:
    """Measure the pressure on one replica."""
    usage, preempted = replica.fact(Signal.KV_USAGE_RATIO), replica.fact(Signal.PREEMPTIONS)
    count = replica.value(Signal.PREEMPTIONS)
    late = None
    if preempted is not None and preempted.start is not None:
        late = max(0.0, preempted.value - preempted.start)
    ran = replica.amount(Signal.FINISHED) + replica.amount(Signal.RUNNING)
    return Pressure(
        usage_ratio=replica.value(Signal.KV_USAGE_RATIO),
        start_ratio=None if usage is None else usage.start,
        peak_ratio=replica.kv_peak_ratio,
        preemptions=count,
        preemptions_late=late,
        preempted_share=0.0 if not count else count / max(1.0, ran),
    )


def pool_is_smaller(replica: Replica, peers: tuple[Replica, ...]) -> bool:
    """Whether it may use clearly fewer KV blocks than its peers do, as far as settings and engines tell."""
    own, others = _pool_size(replica), [_pool_size(peer) for peer in peers]
    return bool(others) and own < SMALLER_RATIO * median(others)


def _pool_size(replica: Replica) -> float:
    usable = replica.setting("usable_kv_blocks_ratio")
    blocks = replica.configured("num_gpu_blocks")
    return (float(usable) if isinstance(usable, (int, float)) else 1.0) * (1.0 if blocks is None else blocks)


def room_for_more(replica: Replica) -> bool:
    """Whether more concurrent requests would find blocks: KV use known, never near full in the window, none preempted.

    Unknown use is no room: a bigger batch is never tried blind.
    """
    pressure = pressure_of(replica)
    return pressure.usage_ratio is not None and not pressure.seen
