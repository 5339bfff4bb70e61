"""One replica, or the whole fleet, as the read skills look at it."""

from dataclasses import dataclass
from functools import cached_property

from stack.catalogue import UNLIMITED
from stack.setting import Value
from stack.snapshot import FLEET, Fact, Signal, Snapshot


@dataclass(frozen=True)
class Replica:
    """Facts of one target with the few quantities that several skills derive from them."""

    snapshot: Snapshot
    name: str = FLEET

    def fact(self, signal: Signal) -> Fact | None:
        """The fact behind a signal."""
        return self.snapshot.fact(signal, self.name)

    def value(self, signal: Signal) -> float | None:
        """Its value; None when it was not measured or is not a number."""
        value = self.snapshot.value(signal, self.name)
        return None if value is None or value != value else value

    def amount(self, signal: Signal) -> float:
        """A count, with nothing measured read as nothing counted: only for thresholds that must be reached."""
        return self.value(signal) or 0.0

    def setting(self, name: str) -> Value | None:
        """The value in force, where the source tells."""
        held = self.snapshot.settings.get(name, {})
        return held.get(self.name, held.get(FLEET))

    @cached_property
    def running_mean(self) -> float | None:
        """Running requests over the window, as far as its two ends tell."""
        fact = self.fact(Signal.RUNNING)
        if fact is None:
            return None
        return fact.value if fact.start is None else (fact.value + fact.start) / 2

    @cached_property
    def slots(self) -> float | None:
        """The running-request cap in force, where the source tells."""
        told = [self.setting("running_request_cap"), self.configured("max_num_seqs")]
        known = [float(value) for value in told if isinstance(value, (int, float)) and value < UNLIMITED]
        return min(known, default=None)

    @cached_property
    def token_time_s(self) -> float | None:
        """Mean time between a request's tokens; without a histogram, from how many requests share the token rate."""
        measured = self.value(Signal.ITL_MEAN_S)
        if measured is not None:
            return measured
        rate = self.snapshot.per_s(Signal.GENERATION_TOKENS, self.name)
        return self.running_mean / rate if rate and self.running_mean else None

    @cached_property
    def computed_prompt_tokens(self) -> float | None:
        """Prompt tokens that had to be computed because no cached prefix held them."""
        tokens = self.value(Signal.PROMPT_TOKENS)
        return None if tokens is None else tokens * (1.0 - self.amount(Signal.PREFIX_HIT_RATIO))

    @cached_property
    def kv_peak_ratio(self) -> float | None:
        """Largest KV use seen in the window."""
        fact = self.fact(Signal.KV_USAGE_RATIO)
        return None if fact is None else max(fact.value, fact.start or 0.0, fact.peak or 0.0)

    def configured(self, name: str) -> float | None:
        """A number that the engine says of its own configuration; None when it does not."""
        value = self.snapshot.configuration.get(self.name, {}).get(name)
        try:
            return None if value is None else float(value)
        except ValueError:
            return None


def replicas_of(snapshot: Snapshot) -> tuple[Replica, ...]:
    """Every replica of which something is known over the window."""
    return tuple(Replica(snapshot, name) for name, facts in sorted(snapshot.replicas.items()) if facts)


def peers_of(replica: Replica) -> tuple[Replica, ...]:
    """The other replicas of the same model that take traffic: those that are down or drained compare with nobody."""
    model = replica.snapshot.configuration.get(replica.name, {}).get("model_name")
    return tuple(
        other
        for other in replicas_of(replica.snapshot)
        if other.name != replica.name
        and other.snapshot.configuration.get(other.name, {}).get("model_name") == model
        and not out_of_service(other)
    )


def out_of_service(replica: Replica) -> bool:
    """Whether it is down, drained or weighted to nothing, so that its figures are not those of a serving replica."""
    return replica.value(Signal.UP) == 0 or taken_out(replica) or replica.value(Signal.ROUTING_WEIGHT) == 0


def taken_out(replica: Replica) -> bool:
    """Whether somebody took it out of rotation on purpose."""
    state = replica.snapshot.configuration.get(replica.name, {}).get("gateway_state")
    return replica.setting("replica_state") == "drain" or state in ("DRAIN", "MAINT")
