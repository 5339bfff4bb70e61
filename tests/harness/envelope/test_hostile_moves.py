"""Hostile moves through the real gate, journal and executor; what the envelope allows is written a second time."""

import math
import random
from dataclasses import dataclass, field, replace

import pytest
from envelope_bench import WATCHED_S, WEIGHTS, Enveloped, weights
from scripted_stack import REPLICAS, weight_action

from harness.action import Action
from harness.envelope.record import ENDED, EnvelopeRecord, EnvelopeState
from harness.journal.audit import audit
from harness.mode import Mode
from stack.errors import UnreachableError
from stack.setting import Value

MOVES = 400
VALUES = (math.nan, math.inf, -1.0, 0.0, 39.0, 40.0, 120.0, 121.0, 1e9, "drain", 99.5)
STORED = 100.0
TO_BE_JUDGED_S = 90.0


@dataclass
class Judge:
    """What the written envelope says of each write; it knows nothing of the gate.

    Attributes:
        moved: by replica when it was last moved, from what, and to what.
    """

    enveloped: Enveloped
    moved: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    allowed: int = 0
    breaches: list[str] = field(default_factory=list)
    frozen: bool = False

    def look(self, setting: str, target: str, value: Value) -> None:
        now_s, held = self.enveloped.bench.clock.now_s(), self.enveloped.holds(target)
        if value == STORED and self._taken_back():
            return
        problem = self._problem(setting, target, value, float(held), now_s)
        if problem:
            self.breaches.append(f"{now_s}: {target} {held} to {value}: {problem}")
        self.allowed += 1
        self.moved[target] = now_s, float(held), float(value)

    def _taken_back(self) -> bool:
        record = self.enveloped.bench.journal.envelopes.in_force()
        return record is not None and record.state is EnvelopeState.CLOSING

    def _problem(self, setting: str, target: str, value: Value, held: float, now_s: float) -> str | None:
        if setting != "routing_weight" or isinstance(value, str) or not 40 <= value <= 120 or value != int(value):
            return "outside"
        if abs(value - held) > 10 or value == held:
            return "too long a step, or none"
        record = self.enveloped.bench.journal.envelopes.in_force()
        if record is None or record.opened_s is None:
            return "nobody allows it"
        if now_s >= record.opened_s + record.envelope.lasts_s - TO_BE_JUDGED_S:
            return "too late to be judged"
        if self.frozen:
            return "changes were frozen"
        then_s, before, after = self.moved.get(target, (-math.inf, held, held))
        back = (after - before) * (value - held) < 0
        return "too soon" if now_s - then_s < (60 if back else 5) else None


@pytest.mark.parametrize("worlds", [range(0, 8), range(8, 16), range(16, 24)])
def test_hostile_moves_breach_nothing(bench, worlds: range):
    allowed, endings = 0, set()
    bench.watch(WATCHED_S)
    for seed in worlds:
        judge, record = besieged(Enveloped(bench), random.Random(seed))
        assert judge.breaches == [], f"seed {seed}"
        allowed += judge.allowed
        endings.add(record.state)
        peace(bench)
    assert audit(bench.store).broken is None
    assert allowed >= 30 and EnvelopeState.ROLLED_BACK in endings


def besieged(enveloped: Enveloped, rng: random.Random) -> tuple[Judge, EnvelopeRecord]:
    """An envelope under attack, from its opening to its ending."""
    bench, judge = enveloped.bench, Judge(enveloped)
    bench.stack.on_write = judge.look
    opened = enveloped.open(weights(lasts_s=rng.choice((600.0, 1200.0))))
    assert opened.state is EnvelopeState.OPEN, opened.end_reason
    for _ in range(MOVES):
        bench.clock.sleep(rng.choice((0.1, 1.0, 4.9, 5.0, 7.0, 20.0)))
        bench.executor.move(hostile(rng, enveloped), mode=rng.choice((Mode.AUTO, Mode.APPROVE, Mode.SHADOW)))
        disturb(rng, enveloped, judge)
        if bench.journal.envelopes.in_force() is None:
            break
    else:
        assert enveloped.watch(3000) is not None
    ended = bench.journal.envelopes.envelope(opened.id)
    assert ended.state in ENDED
    if ended.state is EnvelopeState.ROLLED_BACK:
        assert {enveloped.holds(name) for name in REPLICAS} == {STORED}
    return judge, ended


def peace(bench) -> None:
    """Everything as it was, a day later."""
    bench.stack.on_write, bench.stack.after_write = (lambda setting, target, value: None), (lambda: None)
    for name in REPLICAS:
        bench.stack.values["routing_weight", name] = STORED
    bench.clock.sleep(100_000.0)
    if bench.journal.frozen() is not None:
        bench.journal.unfreeze("looked", by="olga", now_s=bench.clock.now_s())
    bench.watch(WATCHED_S)


def hostile(rng: random.Random, enveloped: Enveloped) -> Action:
    """A move that is sometimes sound, mostly not."""
    target = rng.choice((*REPLICAS, "fleet", "r9"))
    held = enveloped.bench.stack.values.get(("routing_weight", target), STORED)
    step = rng.choice((-11.0, -10.0, -3.0, 3.0, 10.0, 11.0))
    after = rng.choice((float(held) + step, float(held) + step, rng.choice(VALUES)))
    before = held if rng.random() < 0.8 else rng.choice(VALUES)
    action = replace(weight_action(), target=target, before=before, after=after)
    return (
        action
        if rng.random() < 0.95
        else replace(action, setting=rng.choice(("running_request_cap", "replica_state", "x")))
    )


def disturb(rng: random.Random, enveloped: Enveloped, judge: Judge) -> None:
    """A look, sometimes blind; lost replies; a freeze that is lifted again; seldom somebody else's hand."""
    bench, stack = enveloped.bench, enveloped.bench.stack
    if rng.random() < 0.2:
        seen = None if rng.random() < 0.05 else stack.snapshot(60.0)
        bench.executor.supervise(seen)
        bench.executor.watch_envelope(seen)
    if rng.random() < (0.5 if judge.frozen else 0.01):
        if judge.frozen:
            bench.journal.unfreeze("looked", by="olga", now_s=bench.clock.now_s())
        else:
            bench.journal.freeze("look first", by="olga", now_s=bench.clock.now_s())
        judge.frozen = not judge.frozen
    stack.after_write = lost if rng.random() < 0.005 else lambda: None
    if rng.random() < 0.002:
        stack.values["routing_weight", rng.choice(REPLICAS)] = 77.0


def lost() -> None:
    raise UnreachableError("the reply was lost")


def test_the_judge_sees_what_a_missing_rule_would_let_through(enveloped_judge: Judge):
    judge = enveloped_judge
    judge.look("routing_weight", "r0", 60.0)
    judge.look("routing_weight", "r1", 90.0)
    judge.look("routing_weight", "r1", 93.0)
    judge.look("running_request_cap", "r2", 90.0)
    assert [breach.split(": ")[-1] for breach in judge.breaches] == ["too long a step, or none", "too soon", "outside"]


@pytest.fixture
def enveloped_judge(bench) -> Judge:
    bench.watch(WATCHED_S)
    enveloped = Enveloped(bench)
    enveloped.open()
    assert WEIGHTS.low == 40 and WEIGHTS.high == 120 and WEIGHTS.step == 10
    return Judge(enveloped)
