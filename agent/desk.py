"""Everything one session works with, and the situation it makes of a snapshot for planners and the chat."""

from dataclasses import dataclass, replace

from agent.account import recalled_text
from agent.environment import environment_of
from agent.persistence import Persistence
from agent.planner import PlanContext
from harness.action import Action
from harness.baseline import Baseline
from harness.diagnosis import Diagnosis
from harness.envelope.envelope import Envelope, Leave
from harness.execution import Executor
from harness.forecast.forecaster import Forecaster
from harness.gate.check import check
from harness.gate.envelope_check import check_envelope
from harness.gate.failure_rules import refusals
from harness.gate.history import History
from harness.journal.journal import Journal
from harness.journal.record import ENDED, Record, State
from harness.memory import Memory
from harness.mode import Mode
from harness.outcome import Ending
from harness.policy import Policy
from harness.shadow.waiting import WaitingChoices
from harness.verdict import Verdict
from skills.skill import PastEpisode, SkillContext
from stack.clock import Clock
from stack.errors import UnreachableError
from stack.reader import StackReader
from stack.snapshot import FLEET, Missing, Snapshot

UNDONE_S = 10_800.0
"""For how long a value that was undone is not tried again."""


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The parts of a session that do not change while it lives.

    Attributes:
        simulated: whether the stack is the simulated one, which needs no shadow record for `auto`.
        window_s: length of a snapshot's window.
        waiting_choices: decisions in shadow that are watched until they can be judged; None in other modes.
    """

    reader: StackReader
    clock: Clock
    journal: Journal
    executor: Executor
    forecaster: Forecaster
    baseline: Baseline
    memory: Memory
    policy: Policy
    mode: Mode
    simulated: bool
    window_s: float
    waiting_choices: WaitingChoices | None = None

    def look(self) -> tuple[Snapshot, str]:
        """A snapshot, or an empty one and why nothing could be read: blind is a situation, not an exception."""
        try:
            return self.reader.snapshot(self.window_s), ""
        except UnreachableError as error:
            missing = Missing("all", FLEET, str(error), "nothing can be diagnosed or changed")
            return Snapshot(self.clock.now_s(), None, 0, {}, {}, missing=(missing,)), str(error)

    def skills(self, snapshot: Snapshot) -> SkillContext:
        """What skills are given."""
        return SkillContext(
            snapshot=snapshot,
            slo=self.policy.slo,
            enabled=self.policy.enabled,
            recall=lambda cause: self._recall(snapshot, cause),
            forecast=lambda action: self.forecaster.forecast(action, snapshot),
            usual_token_time_s=self.baseline.usual_token_time_s(snapshot),
        )

    def observe(self, snapshot: Snapshot) -> None:
        """Learn what the load is and what is usual, and judge the decisions whose window is over."""
        self.forecaster.observe(snapshot)
        self.baseline.observe(snapshot)
        if self.waiting_choices is not None:
            self.waiting_choices.observe(snapshot, self.clock.now_s())

    def check(
        self,
        action: Action,
        snapshot: Snapshot,
        mode: Mode | None = None,
        history: History | None = None,
        *,
        as_move: bool = False,
    ) -> Verdict:
        """The gate's ruling now, in the session's mode unless another is given; see harness.gate.check.check."""
        return check(
            action,
            snapshot,
            history or self.executor.history(),
            self.policy,
            mode=mode or self.mode,
            now_s=self.clock.now_s(),
            simulated=self.simulated,
            as_move=as_move,
        )

    def check_envelope(self, envelope: Envelope, snapshot: Snapshot) -> Verdict:
        """The gate's ruling on an envelope now."""
        now_s, history = self.clock.now_s(), self.executor.history()
        return check_envelope(envelope, snapshot, history, self.policy, mode=self.mode, now_s=now_s)

    @property
    def leave(self) -> Leave | None:
        """The envelope in force."""
        in_force = self.journal.envelopes.in_force()
        return None if in_force is None else in_force.leave

    def expire(self) -> None:
        """End what nobody decided on in time."""
        now_s = self.clock.now_s()
        self.journal.expire(now_s=now_s)
        self.journal.envelopes.expire(now_s=now_s)

    def planner_pauses(self) -> bool:
        """Whether so many of the planner's proposals were refused lately that it is not asked for now."""
        return refusals(self.executor.history(), self.policy.pace, self.clock.now_s()) > 0

    def planning(self, snapshot: Snapshot, diagnosis: Diagnosis, persistence: Persistence) -> PlanContext:
        """What a planner may look at."""
        history = self.executor.history()
        since_s = self.clock.now_s() - UNDONE_S
        lately = (p for p in history.past if p.ending is Ending.ROLLED_BACK and p.touched_s >= since_s)
        undone = {(p.setting, p.target, p.after) for p in lately}
        return PlanContext(
            diagnosis=self._unanswered(diagnosis),
            skills=self.skills(snapshot),
            check=lambda action: self.check(action, snapshot, history=history, as_move=True),
            forecast=lambda action: self.forecaster.forecast(action, snapshot),
            screen=lambda action: self.forecaster.screen(action, snapshot),
            persistence=persistence,
            policy=self.policy,
            undone=frozenset(undone),
            asked=self._asked(),
            memory=self._memory_text(snapshot),
            mode=self.mode,
            leave=history.leave,
        )

    def _unanswered(self, diagnosis: Diagnosis) -> Diagnosis:
        """The diagnosis without what a change on trial answers: its layer, and the other troubles of its replica.

        Two answers at once could not be told apart, and a replica's other troubles are mostly symptoms of the first.
        In shadow a decision is on trial while it is watched: a second best would otherwise be proposed beside it.
        """
        watched = () if self.waiting_choices is None else self.waiting_choices.choices
        trials = [record.action for record in self.journal.records({State.PROBATION})]
        trials += [choice.action for choice in watched if choice.action is not None]
        layers, targets = {action.layer for action in trials}, {action.target for action in trials} - {FLEET}
        left = tuple(f for f in diagnosis.findings if f.layer not in layers and f.target not in targets)
        return replace(diagnosis, findings=left)

    def _asked(self) -> frozenset[tuple[str, str]]:
        """What waits for a person, or was recorded in shadow or refused within its cooldown."""
        now_s, cooldown_s = self.clock.now_s(), self.policy.pace.cooldown_s
        answered = {State.SHADOWED, State.REJECTED, State.DENIED}
        lately = self.journal.records(answered, since_s=now_s - max(cooldown_s.values()))
        asked = [r for r in lately if now_s - r.proposed_s < cooldown_s[r.action.declaration.setting_class.value]]
        asked += self.journal.records({State.AWAITING_APPROVAL})
        return frozenset((record.action.setting, record.action.target) for record in asked)

    def _recall(self, snapshot: Snapshot, cause: str) -> tuple[PastEpisode, ...]:
        now_s = self.clock.now_s()
        recalled = self.memory.recall(environment_of(snapshot), now_s=now_s, cause=cause)
        return tuple(
            PastEpisode(
                cause=item.episode.cause,
                setting=item.episode.setting,
                target=item.episode.target,
                before=item.episode.before,
                after=item.episode.after,
                ending=item.episode.ending,
                measured=item.episode.measured or "",
                similarity_ratio=item.weight,
                age_s=max(0.0, now_s - item.episode.time_s),
            )
            for item in recalled
        )

    def _memory_text(self, snapshot: Snapshot) -> str:
        recalled = self.memory.recall(environment_of(snapshot), now_s=self.clock.now_s())
        return recalled_text(recalled)

    def remember(self, record: Record, snapshot: Snapshot) -> None:
        """Store the episode of a change that has ended, and what was predicted beside what was measured.

        What never wrote to the stack teaches nothing about it.
        """
        if record.state in ENDED and record.applied_s is not None:
            self.memory.remember(record, environment_of(snapshot))
            self.forecaster.record(record.action, record.verification)
