"""The one door for user interfaces and evals: cycles, questions, decisions, stop."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TypeAlias
from uuid import uuid4

from agent.account import changes_text
from agent.chat import Chat, Exchange
from agent.chat_context import ChatContext
from agent.desk import Desk
from agent.events import AnswerText, Event, Proposed
from agent.graph import build_graph, run_cycle
from agent.nodes import Nodes
from agent.persistence import Persistence
from agent.planner import Planner
from agent.report import CycleReport, report_of
from agent.state import CycleState
from harness.action import Action
from harness.approval import Approve, Decision, Edit, Reject
from harness.envelope.envelope import Envelope
from harness.envelope.record import EnvelopeRecord
from harness.journal.record import Record, State
from harness.mode import Mode
from harness.role import NotAllowedError, Role
from harness.verdict import Verdict
from skills.diagnose import diagnose
from stack.setting import SettingClass

__all__ = ["CycleReport", "Pending", "Session"]
RETRY_S = 5.0
"""Between two tries to undo on the way out; after rollback_retry_s of them a person is needed."""
Score: TypeAlias = Callable[[], Mapping[str, object]]


@dataclass(frozen=True)
class Pending:
    """A proposal that waits for a person.

    Attributes:
        id: what `Session.decide` wants.
        digest: of what is asked; whoever approves or edits it gives it back, so that it covers what they were shown.
        expires_at: wall time, UTC, after which nobody can approve it any more.
    """

    id: int
    digest: str
    action: Action
    verdict: Verdict
    expires_at: datetime


class Session:
    """One stack under care. Not for several threads at once: cycles, questions and decisions take turns."""

    def __init__(
        self,
        desk: Desk,
        planner: Planner,
        chat: Chat,
        *,
        cycle_s: float,
        score: Score | None = None,
        lasts_s: float = math.inf,
    ) -> None:
        self._desk, self._planner, self._chat = desk, planner, chat
        self._lasts_s = lasts_s
        self._cycle_s, self._score = cycle_s, score
        self._graph = build_graph(Nodes(desk, planner))
        self._name, self._numbers = uuid4().hex, count(1)
        self._started_s = self._begun_s = desk.clock.now_s()
        self._persistence = Persistence()
        self._exchanges: tuple[Exchange, ...] = ()
        self._remember(desk.executor.recover())

    @property
    def started_s(self) -> float:
        """Stack time at which the session began."""
        return self._started_s

    @property
    def lasts_s(self) -> float:
        """Seconds after which there is nothing left to see: the length of a recording."""
        return self._lasts_s

    @property
    def elapsed_s(self) -> float:
        """Stack time since the session began."""
        return self._desk.clock.now_s() - self._started_s

    @property
    def frozen(self) -> str | None:
        """Why changes are halted; None when they are not."""
        return self._desk.journal.frozen()

    def cycle(self) -> CycleReport:
        """Let one cycle's time pass, then observe, diagnose, plan, gate, approve, execute, verify and remember."""
        self._wait()
        return self._turn(next(self._numbers), planning=True)

    def finish(self) -> tuple[Record, ...]:
        """Let open changes come to an end without planning new ones, and return all that have ended.

        What has no verdict when the longest verification is over is undone.
        """
        plan = self._desk.policy.verification
        until_s = self._desk.clock.now_s() + plan.settle_s + plan.longest_s + plan.blind_grace_s
        while self._ours_in_flight and self._desk.clock.now_s() < until_s:
            self._wait()
            self._turn(next(self._numbers), planning=False)
        self.leave("the session ended before there was a verdict")
        return self.episodes()

    def leave(self, reason: str) -> tuple[Record, ...]:
        """Go without waiting for verdicts: what is not proved yet is undone, nothing is frozen."""
        executor, clock = self._desk.executor, self._desk.clock
        until_s = clock.now_s() + self._desk.policy.verification.rollback_retry_s + RETRY_S
        ended = executor.undo_open(reason)
        while self._ours_in_flight and clock.now_s() < until_s:
            clock.sleep(RETRY_S)
            ended += executor.undo_open(reason)
        self._remember(ended)
        return ended

    def ask(self, text: str, by: str = "operator", role: Role = Role.OPERATOR) -> Iterator[Event]:
        """Events that answer `text`; a change it asks for waits for an approval, and a viewer's text asks for none.

        A model is told again what was said before by the same person in the same role: what a viewer said must not
        be taken for an operator's words later.
        """
        context = self._chat_context(by, role)
        past = tuple(exchange for exchange in self._exchanges if (exchange.by, exchange.role) == (by, role))
        said = []
        for event in self._chat.answer(text, context, past):
            if isinstance(event, AnswerText):
                said.append(event.text)
            yield event
        self._exchanges = (*self._exchanges, Exchange(text, "".join(said), by, role))

    def pending(self) -> tuple[Pending, ...]:
        """Proposals that wait for a person, oldest first."""
        self._desk.expire()
        waiting = self._desk.journal.records({State.AWAITING_APPROVAL})
        return tuple(Pending(r.id, r.proposal.digest, r.action, r.verdict, r.expires_at) for r in waiting)

    def decide(self, approval_id: int, decision: Decision) -> Record:
        """Record a person's answer; an approved change is made in the next cycle, if the gate still allows it.

        An edited value is another change: the gate rules on it here, on what is measured now.

        Raises:
            NotAllowedError: the person's role does not let them decide.
            ApprovalError: they were shown something else, or another person must decide.
            TransitionError: it was decided before, has expired, or does not exist.
        """
        journal, now_s = self._desk.journal, self._desk.clock.now_s()
        if not isinstance(decision, Edit):
            return journal.decide(approval_id, decision, now_s=now_s)
        edited = decision.of(journal.record(approval_id).action)
        verdict = self._desk.check(edited, self._desk.look()[0], Mode.APPROVE)
        expiry_s = self._desk.policy.expiry_s(edited.setting_class)
        return journal.edit(approval_id, decision, verdict, now_s=now_s, expiry_s=expiry_s)

    def propose(self, action: Action, role: Role = Role.OPERATOR) -> Proposed:
        """Put a change a person asked for before the gate; if it passes, it waits for an approval in every mode.

        Raises:
            NotAllowedError: the person's role does not let them ask for changes.
        """
        if not role.may_ask_for_changes:
            raise NotAllowedError(f"a {role} cannot ask for changes; an {Role.OPERATOR} must. Nothing was proposed")
        mode = Mode.SHADOW if self._desk.mode is Mode.SHADOW else Mode.APPROVE
        verdict = self._desk.check(action, self._desk.look()[0], mode)
        record = self._desk.journal.propose(
            action,
            verdict,
            mode=mode,
            now_s=self._desk.clock.now_s(),
            expiry_s=self._desk.policy.expiry_s(action.setting_class),
        )
        waits = record.state is State.AWAITING_APPROVAL
        return Proposed(action, verdict, record.id if waits else None, record.proposal.digest if waits else "")

    def check_envelope(self, envelope: Envelope) -> Verdict:
        """How the gate would rule on an envelope now; nothing is proposed."""
        return self._desk.check_envelope(envelope, self._desk.look()[0])

    def propose_envelope(self, envelope: Envelope, role: Role = Role.OPERATOR) -> EnvelopeRecord:
        """Put an envelope before the gate; unless it is denied it waits for a person in every mode but shadow.

        Raises:
            NotAllowedError: the person's role does not let them ask for changes.
        """
        if not role.may_ask_for_changes:
            raise NotAllowedError(f"a {role} cannot ask for changes; an {Role.OPERATOR} must. Nothing was proposed")
        desk, verdict = self._desk, self.check_envelope(envelope)
        now_s, expiry_s = desk.clock.now_s(), desk.policy.expiry_s(SettingClass.A)
        return desk.journal.envelopes.propose(envelope, verdict, mode=desk.mode, now_s=now_s, expiry_s=expiry_s)

    def decide_envelope(self, envelope_id: int, decision: Approve | Reject) -> EnvelopeRecord:
        """Record a person's answer; an approved envelope is opened in the next cycle, if the gate still allows it.

        Raises:
            NotAllowedError, ApprovalError, TransitionError: as for `decide`.
        """
        return self._desk.journal.envelopes.decide(envelope_id, decision, now_s=self._desk.clock.now_s())

    def envelopes(self) -> tuple[EnvelopeRecord, ...]:
        """Every envelope that was proposed, with how it stands or ended, oldest first."""
        return self._desk.journal.envelopes.envelopes()

    def envelope(self, envelope_id: int) -> EnvelopeRecord:
        """One envelope as it stands now."""
        return self._desk.journal.envelopes.envelope(envelope_id)

    @property
    def envelope_in_force(self) -> EnvelopeRecord | None:
        """The one whose moves are in force, or are being taken back."""
        return self._desk.journal.envelopes.in_force()

    def envelopes_since_start(self) -> tuple[EnvelopeRecord, ...]:
        """Those that were proposed in this session."""
        return tuple(record for record in self.envelopes() if record.proposed_s >= self._started_s)

    def episodes(self) -> tuple[Record, ...]:
        """Changes that came to one of the four endings, oldest first."""
        return self._desk.journal.ended()

    def records(self) -> tuple[Record, ...]:
        """Everything that was proposed, with how it stands or ended, oldest first."""
        return self._desk.journal.records()

    def records_since_start(self) -> tuple[Record, ...]:
        """What was proposed in this session."""
        return tuple(record for record in self.records() if record.proposed_s >= self._started_s)

    def stop(self, by: str = "operator") -> tuple[Record, ...]:
        """Halt all changes now and undo what is in flight. Only a person lifts it again."""
        ended = self._desk.executor.stop(by=by)
        self._remember(ended)
        return ended

    def score(self) -> Mapping[str, object]:
        """What the requests of a simulated run got; empty for a stack that cannot tell."""
        return {} if self._score is None else self._score()

    @property
    def _ours_in_flight(self) -> bool:
        journal = self._desk.journal
        return journal.leads and (bool(journal.open_records()) or journal.envelopes.in_force() is not None)

    def _wait(self) -> None:
        """Until a cycle's time after the last one began: windows that follow one another should also touch."""
        now_s = self._desk.clock.now_s()
        self._begun_s = max(now_s, self._begun_s + self._cycle_s)
        self._desk.clock.sleep(self._begun_s - now_s)

    def _turn(self, number: int, *, planning: bool) -> CycleReport:
        start: CycleState = {
            "key": f"{self._name}-{number}",
            "persistence": self._persistence,
            "planning": planning,
        }
        end = run_cycle(self._graph, start)
        self._persistence = end["persistence"]
        return report_of(number, end, self._desk.journal)

    def _chat_context(self, by: str, role: Role) -> ChatContext:
        snapshot, _ = self._desk.look()
        self._desk.observe(snapshot)
        diagnosis = diagnose(snapshot, self._desk.skills(snapshot))
        return ChatContext(
            planning=self._desk.planning(snapshot, diagnosis, self._persistence),
            changes=changes_text(self._desk.journal.records()),
            propose=lambda action: self.propose(action, role),
            user=by,
            role=role,
        )

    def _remember(self, ended: tuple[Record, ...]) -> None:
        snapshot, _ = self._desk.look()
        for record in ended:
            self._desk.remember(record, snapshot)
