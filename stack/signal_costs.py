"""One table: what cannot be diagnosed without a signal, and the reasons why one can be absent."""

from dataclasses import dataclass

from stack.snapshot import Signal

SINGLE_SCRAPE = "a single scrape: values since process start say nothing about load"
NOT_EXPORTED = "not in the source"
NO_OBSERVATION = "no observation in the window"
TOO_FEW = "too few observations in the window"
BEYOND_BUCKETS = "above the largest bucket of the histogram"


@dataclass(frozen=True)
class SignalGroup:
    """Signals that are present or absent together.

    Attributes:
        name: the name under which the group is listed as missing: that of its leading signal.
        signals: any one of these makes the group present.
        costs: what cannot be diagnosed without it.
        gateway: it comes from the gateway, so a replica's engine never has it.
    """

    name: str
    signals: tuple[Signal, ...]
    costs: str
    gateway: bool = False


GROUPS: tuple[SignalGroup, ...] = (
    SignalGroup(Signal.RUNNING, (Signal.RUNNING,), "whether the running cap binds, and load balance between replicas"),
    SignalGroup(Signal.WAITING, (Signal.WAITING,), "whether requests queue in the engine, and why"),
    SignalGroup(
        Signal.KV_USAGE_RATIO, (Signal.KV_USAGE_RATIO,), "KV pressure; no action that uses more memory is safe"
    ),
    SignalGroup(Signal.PREEMPTIONS, (Signal.PREEMPTIONS,), "preemption storms and their recomputed tokens"),
    SignalGroup(
        Signal.PREFIX_HIT_RATIO,
        (Signal.PREFIX_HIT_RATIO, Signal.PREFIX_QUERIED_TOKENS),
        "whether the prefix cache helps, and whether routing scatters prefixes",
    ),
    SignalGroup(Signal.FINISHED, (Signal.FINISHED,), "throughput in requests, goodput and the effect of any change"),
    SignalGroup(
        Signal.GENERATION_TOKENS, (Signal.GENERATION_TOKENS,), "throughput in tokens and whether prefill starves decode"
    ),
    SignalGroup(Signal.TTFT_P95_S, (Signal.TTFT_P95_S, Signal.TTFT_MEAN_S), "time to first token against its limit"),
    SignalGroup(Signal.ITL_P95_S, (Signal.ITL_P95_S, Signal.ITL_MEAN_S), "token pace and slow replicas"),
    SignalGroup(
        Signal.E2E_P99_S, (Signal.E2E_P99_S, Signal.E2E_MEAN_S), "end-to-end latency, by which changes are judged"
    ),
    SignalGroup(
        Signal.QUEUE_P95_S, (Signal.QUEUE_P95_S, Signal.QUEUE_MEAN_S), "how much of TTFT is waiting in the engine"
    ),
    SignalGroup(Signal.STEP_TOKENS_MEAN, (Signal.STEP_TOKENS_MEAN,), "whether the token budget of a step is used"),
    SignalGroup(
        Signal.GATEWAY_QUEUE, (Signal.GATEWAY_QUEUE,), "queues in front of the engines: routing and admission", True
    ),
    SignalGroup(
        Signal.ROUTING_WEIGHT,
        (Signal.ROUTING_WEIGHT, Signal.UP),
        "how traffic is spread and which replicas take it",
        True,
    ),
    SignalGroup(
        Signal.DEVICE_FREE_BYTES,
        (Signal.DEVICE_FREE_BYTES,),
        "device memory and fragmentation; KV figures stand in for it",
    ),
)

QUANTILES: tuple[tuple[Signal, str], ...] = (
    (Signal.TTFT_P99_S, "the TTFT tail against its limit"),
    (Signal.ITL_P99_S, "the token pace tail against its limit"),
    (Signal.E2E_P99_S, "whether the latency rule of the gate holds"),
    (Signal.QUEUE_P95_S, "the queueing tail"),
)
"""Fleet quantiles worth naming when their histogram is there but cannot give them."""
