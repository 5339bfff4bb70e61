"""What is believed of a stack: from snapshots alone, never from a simulation's hidden truth."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from harness.forecast.load import Load
from harness.forecast.measured import block_tokens, measured_steps
from harness.forecast.starving import Starving
from harness.objective import Slo
from stack.errors import InputError
from stack.setting import Value
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.gpu import BLOCK_TOKENS, GPUS, known_models
from stack.simulator.hardware.overhead import PROFILES
from stack.simulator.hardware.step_times import usual_precision
from stack.snapshot import FLEET, Signal, Snapshot

T = TypeVar("T")
Held = Mapping[str, Mapping[str, Value]]
"""Value in force per setting and target."""
WEIGHT_MAX = 256.0
HELD_BACK_RATIO = 0.9
"""First tokens that reach the client after this share of the whole answer's time are taken for held back."""


@dataclass(frozen=True)
class Present:
    """What is in the stack now, per replica in the order of their names.

    Attributes:
        running, waiting: requests in each engine.
        at_gateway: requests queued before all of them.
        kv_tokens: tokens in the KV blocks in use; None where unknown.
        serving: whether the replica answers and takes requests.
    """

    running: tuple[int, ...]
    waiting: tuple[int, ...]
    at_gateway: int
    kv_tokens: tuple[float | None, ...]
    serving: tuple[bool, ...]


@dataclass(frozen=True)
class Belief:
    """The stack, its load and its present state as believed.

    Attributes:
        names: the replicas, in the order of every per-replica tuple.
        step_scale: slowness of each replica against the step-time tables.
        scale_spread: standard deviation of the logarithm of the common error of these.
        held: values in force.
        held_back: whether clients see the first token only with the last.
        pull: arrivals of each replica over what its weight gives it; empty when nothing is pulled.
        blind: replicas whose engines tell nothing, or always the same.
        starving: requests that others are preferred to.
        started: limits that the engines were started with, which no setting goes beyond.
        answer_s: what a long answer takes from arrival to its last token.
    """

    fleet: FleetSpec
    names: tuple[str, ...]
    step_scale: tuple[float, ...]
    held: Held
    load: Load
    slo: Slo
    present: Present
    scale_spread: float = 0.05
    held_back: bool = False
    answer_s: float = 0.0
    pull: tuple[float, ...] = ()
    blind: tuple[str, ...] = ()
    starving: Starving = field(default_factory=Starving)
    started: Held = field(default_factory=dict)

    def simulated(self, setting: str, target: str, value: Value) -> Value:
        """The value that has the same effect in the simulation.

        No more than the engine was started with; where traffic is pulled, a weight that is multiplied by the pull.
        """
        most = self.started.get(setting, {}).get(target)
        if most is not None and not isinstance(value, str) and not isinstance(most, str):
            return min(value, most)
        if setting != "routing_weight" or not self.pull or isinstance(value, str):
            return value
        return float(min(WEIGHT_MAX, round(float(value) * self.pull[self.names.index(target)])))

    def value(self, setting: str, index: int, default: float) -> float:
        """A number in force on a replica."""
        told = self.held.get(setting, {}).get(self.names[index], default)
        return default if isinstance(told, str) else float(told)


def present_of(snapshot: Snapshot, *, at_start: bool = False) -> Present:
    """The stack's content at the end of a snapshot's window, or at its start."""

    def gauge(signal: Signal, name: str) -> float:
        fact = snapshot.fact(signal, name)
        if fact is None:
            return 0.0
        return fact.start if at_start and fact.start is not None else fact.value

    names = sorted_names(snapshot)
    return Present(
        running=tuple(int(gauge(Signal.RUNNING, name)) for name in names),
        waiting=tuple(int(gauge(Signal.WAITING, name)) for name in names),
        at_gateway=int(gauge(Signal.GATEWAY_QUEUE, FLEET)),
        kv_tokens=tuple(_kv_tokens(snapshot, name, gauge(Signal.KV_USAGE_RATIO, name)) for name in names),
        serving=tuple(_serving(snapshot, name) for name in names),
    )


def sorted_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Replicas by number where their names end in one, so that replica-10 comes after replica-9."""
    return tuple(sorted(snapshot.replicas, key=lambda name: (len(name), name)))


def fleet_of(snapshot: Snapshot, slo: Slo, earlier: Sequence[Snapshot] = ()) -> FleetSpec | str:
    """The fleet as the engines describe themselves, or why it cannot be simulated.

    Where no table knows the model or the GPU, the engines' own step times take its place; see `measured`.
    """
    described = next((facts for _, facts in sorted(snapshot.configuration.items()) if "model_name" in facts), {})
    name, gpu, blocks = (described.get(key) for key in ("model_name", "gpu", "num_gpu_blocks"))
    model = next((key for key, one in known_models().items() if name in (key, one.repository)), None)
    if model is None or gpu not in GPUS:
        steps = measured_steps(snapshot, earlier)
        if isinstance(steps, str):
            where = f"{name or 'that no engine names'} on {gpu or 'an unknown GPU'}"
            return f"no step-time table for the model {where}; {steps}"
        return FleetSpec(
            measured=steps,
            replicas=len(snapshot.replicas),
            ttft_limit_s=slo.ttft_s,
            ttft_limit_s_per_token=slo.ttft_s_per_prompt_token,
        )
    engine = described.get("engine")
    try:
        return FleetSpec(
            model=model,
            gpu=str(gpu),
            tensor_parallel=int(float(described.get("gpu_count", 1))),
            precision=str(described.get("precision", usual_precision(model))),
            replicas=len(snapshot.replicas),
            kv_blocks=None if blocks is None else int(float(blocks) * block_tokens(described) / BLOCK_TOKENS),
            profile=str(engine) if engine in PROFILES else FleetSpec.profile,
            ttft_limit_s=slo.ttft_s,
            ttft_limit_s_per_token=slo.ttft_s_per_prompt_token,
        )
    except InputError as error:
        return str(error)


def answers_held_back(snapshot: Snapshot) -> bool:
    """Whether a proxy keeps answers until they are whole: the gateway's first tokens come late, the engines' do not."""
    seen, whole = snapshot.value(Signal.TTFT_MEAN_S), snapshot.value(Signal.E2E_MEAN_S)
    made = [snapshot.value(Signal.TTFT_MEAN_S, name) for name in snapshot.replicas]
    known = [value for value in made if value is not None]
    if not seen or not whole or not known:
        return False
    return seen > HELD_BACK_RATIO * whole and statistics.median(known) < HELD_BACK_RATIO * seen


def blind_replicas(snapshot: Snapshot) -> tuple[str, ...]:
    """Replicas that take requests and whose engines tell nothing, or whose counters stand still while some run."""
    finished = snapshot.value(Signal.FINISHED) or 0.0

    def blind(name: str) -> bool:
        running, tokens = snapshot.value(Signal.RUNNING, name), snapshot.value(Signal.GENERATION_TOKENS, name)
        return running is None or tokens is None or (running > 0 and tokens == 0 and finished > 0)

    return tuple(name for name in sorted_names(snapshot) if _serving(snapshot, name) and blind(name))


def restricted(belief: Belief, chosen: Sequence[int]) -> Belief:
    """The same belief of some of the replicas, with their part of the load; names and scales stay theirs."""
    names = tuple(belief.names[index] for index in chosen)
    part = _share(belief, chosen)
    present = belief.present

    def of(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(values[index] for index in chosen)

    return replace(
        belief,
        names=names,
        fleet=replace(belief.fleet, replicas=len(chosen)),
        step_scale=of(belief.step_scale),
        pull=of(belief.pull) if belief.pull else (),
        load=belief.load.times(part),
        present=Present(
            of(present.running),
            of(present.waiting),
            round(present.at_gateway * part),
            of(present.kv_tokens),
            of(present.serving),
        ),
    )


def _share(belief: Belief, chosen: Sequence[int]) -> float:
    """The chosen replicas' part of the load: by weight under round robin, otherwise by speed as well."""
    policy = belief.held.get("routing_policy", {}).get(FLEET, "round_robin")
    by_speed = policy != "round_robin"
    parts = [
        belief.value("routing_weight", index, 100.0) * serving / (scale if by_speed else 1.0)
        for index, (serving, scale) in enumerate(zip(belief.present.serving, belief.step_scale, strict=True))
    ]
    return sum(parts[index] for index in chosen) / max(1e-9, sum(parts))


def _serving(snapshot: Snapshot, name: str) -> bool:
    up = snapshot.value(Signal.UP, name)
    return up is None or up > 0


def _kv_tokens(snapshot: Snapshot, name: str, usage: float) -> float | None:
    facts = snapshot.configuration.get(name, {})
    blocks = facts.get("num_gpu_blocks")
    if blocks is None or snapshot.value(Signal.KV_USAGE_RATIO, name) is None:
        return None
    usable = snapshot.settings.get("usable_kv_blocks_ratio", {}).get(name, 1.0)
    return usage * float(blocks) * (1.0 if isinstance(usable, str) else float(usable)) * block_tokens(facts)
