"""What a gate rule looks at, and how it answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from harness.action import Action, Predicted, Trust
from harness.envelope.envelope import Leave, PlaceKey
from harness.gate.condition import is_down, sickness
from harness.gate.history import History
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import RuleResult, Ruling
from stack.setting import Effect, Scope, Setting
from stack.snapshot import FLEET, Signal, Snapshot

_Case = TypeVar("_Case")
Answer: TypeAlias = tuple[Ruling, str]
"""A ruling and its reason with numbers, in words."""


class MissingInputError(ValueError):
    """A rule could not be decided because an input is missing: the gate denies."""


def allow(detail: str) -> Answer:
    """The rule has nothing against it."""
    return Ruling.ALLOW, detail


def ask(detail: str) -> Answer:
    """A person must decide."""
    return Ruling.ASK, detail


def deny(detail: str) -> Answer:
    """It must not be done."""
    return Ruling.DENY, detail


def decided(rule: Callable[[_Case], Answer], case: _Case) -> RuleResult:
    """A rule's answer under its name; one that cannot be decided denies, whatever the reason is."""
    try:
        ruling, detail = rule(case)
    except Exception as error:  # noqa: BLE001 - a plan may hold anything, and what breaks a rule must not pass it
        return RuleResult(rule.__name__, Ruling.DENY, f"could not be decided: {error}")
    return RuleResult(rule.__name__, ruling, detail)


@dataclass(frozen=True)
class Case:
    """One action in its situation; every rule is a pure function of a case.

    Attributes:
        simulated: whether the stack is the simulated one, which needs no shadow record.
        as_move: whether it is to be made as a move inside the envelope in force, if that covers it.
    """

    action: Action
    snapshot: Snapshot
    history: History
    policy: Policy
    mode: Mode
    now_s: float
    simulated: bool = False
    as_move: bool = False

    @cached_property
    def setting(self) -> Setting:
        """The catalogue's declaration."""
        return self.action.declaration

    @cached_property
    def effects(self) -> frozenset[Effect]:
        """What the change does for certain."""
        return self.action.certain_effects

    @cached_property
    def protective(self) -> bool:
        """Whether lowering risk is its purpose: by its nature, or because it drains a replica that is sick."""
        return Effect.PROTECTS in self.effects or (self.sickness is not None and self.takes_away)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Where the value would be written: a replica, the pool, or every replica for a per-replica setting."""
        return targets_of(self.action, self.snapshot)

    @cached_property
    def places(self) -> tuple[PlaceKey, ...]:
        """The same with the setting."""
        return tuple((self.action.setting, target) for target in self.targets)

    @cached_property
    def leave(self) -> Leave | None:
        """The envelope in force, if the change is a move inside it; whether it may be made is for a rule to say."""
        leave = self.history.leave if self.as_move else None
        covered = leave is not None and bool(self.places) and all(leave.place(key) for key in self.places)
        return leave if covered else None

    @cached_property
    def sickness(self) -> str | None:
        """Why the one replica it changes should get no new requests; None for a sound one, and for the fleet."""
        return None if self.action.target == FLEET else sickness(self.snapshot, self.action.target, self.policy)

    @cached_property
    def takes_away(self) -> bool:
        """Whether the target serves no new requests afterwards, if only for the length of a restart."""
        after = self.action.after
        gone = {"routing_weight": after == 0, "replica_state": after == "drain"}
        return gone.get(self.action.setting, self.setting.setting_class.value == "C")

    @cached_property
    def removes_capacity(self) -> bool:
        """Whether it takes away what serves now: a replica that is down has no load to lose."""
        return self.takes_away and not all(is_down(self.snapshot, target) for target in self.targets)

    @property
    def raises_memory(self) -> bool:
        """Whether more KV blocks may be in use afterwards, on the target or on the replicas that take over its load."""
        return Effect.RAISES_MEMORY in self.effects or self.removes_capacity

    def trusted(self, effect: str) -> Predicted | None:
        """A predicted quantity, if there is a forecast that may be relied on."""
        forecast = self.action.forecast
        if forecast is None or forecast.trust is not Trust.TRUSTED:
            return None
        predicted = forecast.effects.get(effect)
        finite = predicted is not None and math.isfinite(predicted.before) and math.isfinite(predicted.after)
        return predicted if finite else None

    def need(self, signal: Signal, target: str = FLEET) -> float:
        """A measured value that must be there and finite.

        Raises:
            MissingInputError: it is not.
        """
        value = self.snapshot.value(signal, target)
        if value is None or not math.isfinite(value):
            raise MissingInputError(f"{signal} of {target} is {'missing' if value is None else value}")
        return value

    def known(self, signal: Signal, target: str = FLEET) -> float | None:
        """A measured value, or None when it is absent; what is there must be finite.

        Raises:
            MissingInputError: it is there and not finite.
        """
        return None if self.snapshot.value(signal, target) is None else self.need(signal, target)

    @property
    def queue(self) -> float:
        """Requests waiting in engines and gateway."""
        return self.need(Signal.WAITING) + (self.known(Signal.GATEWAY_QUEUE) or 0.0)

    def device_floor_bytes(self, replica: str) -> float:
        """Free device memory that must be left on a replica."""
        limits = self.policy.memory
        total = self.known(Signal.DEVICE_TOTAL_BYTES, replica) or 0.0
        return max(limits.device_free_min_bytes, limits.device_free_min_ratio * total)


def targets_of(action: Action, snapshot: Snapshot) -> tuple[str, ...]:
    """Where an action's value is written: one target, or every replica for a per-replica setting of the fleet."""
    if action.target == FLEET and action.declaration.scope is Scope.REPLICA:
        return tuple(sorted(snapshot.replicas))
    return (action.target,)
