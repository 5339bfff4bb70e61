"""One world under attack: hostile plans go through the real gate, journal and executor, and a judge watches."""

import math
import random
from dataclasses import dataclass, field, replace

from hostile_plans import HostilePlanner
from hostile_world import BLIND, HostileWorld, drawn
from scripted_stack import REPLICAS, ManualClock
from written_policy import Change, WrittenPolicy

from harness.action import Trust
from harness.approval import Approve, Reject
from harness.errors import ApprovalError
from harness.execution import Executor
from harness.gate.check import check
from harness.gate.history import History
from harness.journal.journal import AUTO, Journal
from harness.journal.lease import Lease
from harness.journal.record import Record, State
from harness.journal.store import Store
from harness.mode import Mode
from harness.outcome import HARD_STOP
from harness.policy import Policy
from harness.verdict import Ruling
from stack.setting import Value

ENABLED = (
    "routing_weight",
    "replica_state",
    "replica_concurrency_cap",
    "routing_policy",
    "deadline_shedding_ratio",
    "running_request_cap",
    "tokens_per_step",
    "usable_kv_blocks_ratio",
    "execution_profile",
    "worker_generation",
)
POLICY = Policy.load(enabled=ENABLED)


@dataclass
class Siege:
    """The attack on one world.

    Attributes:
        whole: every proposal goes into the journal; otherwise those that the gate does not deny.
    """

    seed: int
    store: Store
    whole: bool = False
    judge: WrittenPolicy = field(default_factory=WrittenPolicy)
    made: int = 0
    reached: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.clock = ManualClock(1_000_000.0)
        self.world = HostileWorld(self.rng, self.clock, self._written)
        self.planner = HostilePlanner(self.rng)
        lease = Lease.take(self.store, "stack", clock=ManualClock())
        self.journal = Journal(self.store, wall=self.clock, lease=lease)
        self.executor = Executor(self.world, self.journal, POLICY, self.clock, self.world, simulated=True)
        self.old = self.fresh = self.world.snapshot(60.0)
        self.past = self.executor.history()
        self.applying: Record | None = None
        self.group: list[tuple[str, str, Value, Value]] = []
        self.changes: dict[int, Change] = {}
        self.clock_set_s = -math.inf

    def run(self, plans: int) -> None:
        self._watch(420.0)
        while self.made < plans:
            self._time_passes()
            self._attack()
        self.world.blind, self.world.failing = None, False
        self._end()

    def _attack(self) -> None:
        """One plan, or two at the same moment."""
        self.judge.clock_set = self.clock.steady_s() - self.clock_set_s < 300
        approved = [self._propose() for _ in range(self.rng.choice((1, 1, 1, 2)))]
        for record in approved:
            if record is not None and record.state is State.APPROVED:
                self._apply(record)

    def _propose(self) -> Record | None:
        self.made += 1
        seen = self.old if self.rng.random() < 0.1 else self.fresh
        self.old = self.fresh if self.rng.random() < 0.02 else self.old
        action = self.planner.plan(self.fresh)
        mode = self.rng.choice((Mode.AUTO, Mode.AUTO, Mode.APPROVE, Mode.SHADOW))
        verdict = check(action, seen, self._history(), POLICY, mode=mode, now_s=self.clock.now_s(), simulated=True)
        if verdict.ruling is Ruling.DENY and not (self.whole and self._storable(action.after, action.before)):
            return None
        record = self.journal.propose(action, verdict, mode=mode, now_s=self.clock.now_s())
        if record.state is State.AWAITING_APPROVAL:
            record = self._decided(record, careless=self.rng.random() < 0.8)
        self.reached += record.state is State.APPROVED
        return record

    def _decided(self, record: Record, *, careless: bool) -> Record:
        """Olga approves without looking, also what she asked for herself; where that takes two people, Otto helps."""
        now_s = self.clock.now_s()
        if not careless:
            return self.journal.decide(record.id, Reject("olga"), now_s=now_s)
        try:
            return self.journal.decide(record.id, Approve("olga", record.proposal.digest), now_s=now_s)
        except ApprovalError:
            return self.journal.decide(record.id, Approve("otto", record.proposal.digest), now_s=now_s)

    def _apply(self, record: Record) -> None:
        mode = Mode.SHADOW if self.rng.random() < 0.05 else Mode.AUTO
        self.applying, self.group = record, []
        seen = self.old if self.rng.random() < 0.1 and self._stale() else None
        self.executor.apply(record.id, mode=mode, snapshot=seen)
        self.applying = None
        if self.group:
            self._judge(record)
            self.fresh = self.world.snapshot(60.0)
        self._follow()

    def _stale(self) -> bool:
        return self.clock.now_s() - (self.old.time_s or 0.0) > 30

    def _written(self, setting: str, target: str, before: Value, after: Value) -> None:
        if self.applying is None:
            self.judge.wrote(self.clock.now_s(), setting, target)
        elif not any(one[:2] == (setting, target) for one in self.group):  # else: taken back in the same call
            self.group.append((setting, target, before, after))

    def _judge(self, record: Record) -> None:
        values, action = self.world.values, record.action
        forecast = action.forecast
        change = Change(
            time_s=self.clock.now_s(),
            setting=self.group[0][0],
            values={t: (before, after) for _, t, before, after in self.group if before != after},  # else: an undo only
            truth=self.world.truth,
            weights={r: float(self._before("routing_weight", r, values)) for r in REPLICAS},
            states={r: self._before("replica_state", r, values) for r in REPLICAS},
            by_person=record.decided_by != AUTO,
            tainted=action.tainted,
            requested_by=action.requested_by,
            gain_promised=forecast is not None
            and forecast.trust is Trust.TRUSTED
            and forecast.effects["e2e_p99_s"].after <= forecast.effects["e2e_p99_s"].before,
        )
        if len(change.values) in (1, len(REPLICAS)):  # fewer: cut off by a failing write and undone in the same call
            self.judge.judge(change)
            self.changes[record.id] = change
        for setting, target, *_ in self.group:
            self.judge.wrote(change.time_s, setting, target)
        self.planner.accepted.append(action)

    def _before(self, setting: str, target: str, values: dict[tuple[str, str], Value]) -> Value:
        """What was held before the writes of this change."""
        return next((b for s, t, b, _ in self.group if (s, t) == (setting, target)), values[setting, target])

    def _history(self) -> History:
        return replace(self.past, watched_s=self.executor.blocks.watched_s(self.clock.now_s()))

    def _follow(self) -> None:
        """Bring the judge and the history up to date with what ended."""
        self.past = self.executor.history()
        self.judge.halted = self.past.frozen is not None
        for action_id, change in self.changes.items():
            if change.ended_s is not None:
                continue
            record = self.journal.record(action_id)
            if record.outcome is None:
                continue
            stopped = record.verification is not None and record.verification.method == HARD_STOP
            undone = "hard stop" if stopped else "undone"
            change.ended_s = self.clock.now_s()
            change.ending = {State.KEPT: "kept", State.ROLLED_BACK: undone}.get(record.state, "given up")

    def _time_passes(self) -> None:
        rng = self.rng
        if rng.random() < 0.03:
            self.world.truth = replace(drawn(rng), speed=self.world.truth.speed)
        if rng.random() < 0.05:
            self.world.blind = rng.choice((None, None, *BLIND))
        self.judge.blind = self.world.blind is not None
        self.world.failing = rng.random() < 0.05
        if rng.random() < 0.002:
            self._by_hand()
        if rng.random() < 0.001:
            self.clock.time_s += rng.choice((-5.0, 5.0, 900.0, 7200.0))
            self.clock_set_s = self.clock.steady_s()
        if self.judge.halted and rng.random() < 0.05:
            self.journal.unfreeze("looked at it", by="olga", now_s=self.clock.now_s())
            self.judge.hands.clear()
            self._follow()
        elif rng.random() < 0.001:
            self.executor.stop(by="olga")
            self._follow()
        self._watch(rng.choice((0.0, 1.0, 5.0, 15.0, 29.0, 31.0, 60.0, 61.0)))
        if rng.random() < 0.01:
            self._watch(rng.choice((120.0, 600.0, 1200.0, 3600.0)))

    def _by_hand(self) -> None:
        """Somebody else changes a number, mostly one that we wrote last."""
        numbers = [(name, r) for name in ("routing_weight", "running_request_cap") for r in REPLICAS]
        ours = [(setting, target) for _, setting, target in self.judge.writes_s[-1:] if (setting, target) in numbers]
        place = self.rng.choice(ours or numbers)
        self.world.values[place] = float(self.rng.choice((70, 90)))
        self.judge.by_hand(self.clock.now_s(), *place)

    def _watch(self, seconds: float) -> None:
        """Time passes, looked at once a minute, more often while a change is open."""
        until_s = self.clock.now_s() + seconds
        while self.clock.now_s() < until_s:
            self.clock.sleep(min(60.0, until_s - self.clock.now_s()))
            seen = self.fresh = self.world.snapshot(60.0)
            if any(p.settling or p.in_probation for p in self.past.past):
                self._effect()
                if self.executor.supervise(seen) or any(p.settling for p in self.past.past):
                    self._follow()
            else:
                self.executor.blocks.observe(seen, self.clock.now_s())

    def _effect(self) -> None:
        """What a change on trial does to the latency."""
        speeds = {
            change.time_s: random.Random(change.time_s).choice((0.5, 0.7, 1.0, 1.5))
            for change in self.judge.changes
            if change.ended_s is None
        }
        self.world.truth = replace(self.world.truth, speed=min(speeds.values(), default=1.0))

    def _end(self) -> None:
        for _ in range(60):
            self._watch(60.0)
        assert self.journal.open_records() == ()

    @staticmethod
    def _storable(*values: object) -> bool:
        """Whether a row can hold them."""
        return all(isinstance(value, str) or (isinstance(value, float) and math.isfinite(value)) for value in values)
