"""What a gate rule looks at, and how it answers."""

import math
from dataclasses import dataclass
from typing import TypeAlias

from harness.action import Action, Predicted, Trust
from harness.gate.history import History
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import Ruling
from stack.setting import Effect, Scope, Setting
from stack.snapshot import FLEET, Signal, Snapshot

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


@dataclass(frozen=True)
class Case:
    """One action in its situation; every rule is a pure function of a case.

    Attributes:
        simulated: whether the stack is the simulated one, which needs no shadow record.
    """

    action: Action
    snapshot: Snapshot
    history: History
    policy: Policy
    mode: Mode
    now_s: float
    simulated: bool = False

    @property
    def setting(self) -> Setting:
        """The catalogue's declaration."""
        return self.action.declaration

    @property
    def effects(self) -> frozenset[Effect]:
        """What the change does for certain."""
        return self.action.certain_effects

    @property
    def protective(self) -> bool:
        """Whether lowering risk is its purpose."""
        return Effect.PROTECTS in self.effects

    @property
    def targets(self) -> tuple[str, ...]:
        """Where the value would be written: a replica, the pool, or every replica for a per-replica setting."""
        return targets_of(self.action, self.snapshot)

    @property
    def removes_capacity(self) -> bool:
        """Whether the target serves no new requests afterwards, if only for the length of a restart."""
        after = self.action.after
        gone = {"routing_weight": after == 0, "replica_state": after == "drain"}
        return gone.get(self.action.setting, self.setting.setting_class.value == "C")

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


def targets_of(action: Action, snapshot: Snapshot) -> tuple[str, ...]:
    """Where an action's value is written: one target, or every replica for a per-replica setting of the fleet."""
    if action.target == FLEET and action.declaration.scope is Scope.REPLICA:
        return tuple(sorted(snapshot.replicas))
    return (action.target,)
