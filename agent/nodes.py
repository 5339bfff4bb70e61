"""The stages of a cycle. A node may run again: what has an effect is guarded by a row of the journal."""

from dataclasses import dataclass, replace

from agent.desk import Desk
from agent.planner import Plan, Planner
from agent.shadowing import watch_choice
from agent.state import CycleState
from harness.envelope.record import EnvelopeState
from harness.gate.case import targets_of
from harness.journal.record import IN_FLIGHT, State
from harness.mode import Mode
from harness.verdict import Ruling
from skills.diagnose import diagnose


@dataclass(frozen=True)
class Nodes:
    """One method a stage, in the order of the graph."""

    desk: Desk
    planner: Planner

    def observe(self, state: CycleState) -> CycleState:
        """Read the stack; what can't be read is said, not guessed."""
        snapshot, blind = self.desk.look()
        self.desk.observe(snapshot)
        return {"snapshot": snapshot, "blind": blind}

    def diagnose(self, state: CycleState) -> CycleState:
        """What is wrong, and for how long."""
        diagnosis = diagnose(state["snapshot"], self.desk.skills(state["snapshot"]))
        return {"diagnosis": diagnosis, "persistence": state["persistence"].after(diagnosis)}

    def may_plan(self, state: CycleState) -> bool:
        """Whether a new change may be thought of: nothing settles or is frozen, no pause, and we are not blind."""
        journal = self.desk.journal
        halted = journal.records(IN_FLIGHT) or journal.frozen() is not None or self.desk.planner_pauses()
        return state["planning"] and not state["blind"] and not halted

    def plan(self, state: CycleState) -> CycleState:
        """Choose one change, or none. Where a person decides everything, one question is asked at a time."""
        self.desk.expire()
        waiting = self.desk.journal.records({State.AWAITING_APPROVAL, State.APPROVED})
        if waiting and self.desk.mode is not Mode.AUTO and self.desk.leave is None:
            return {"plan": Plan(planner=self.planner.name, reason=f"proposal {waiting[0].id} waits for its decision")}
        context = self.desk.planning(state["snapshot"], state["diagnosis"], state["persistence"])
        return {"plan": self._noted(self.planner.plan(context))}

    def _noted(self, plan: Plan) -> Plan:
        """The plan; in shadow, with what was decided before and is still watched, as its trouble is not planned for."""
        watched = [] if self.desk.waiting_choices is None else self.desk.waiting_choices.choices
        shadowed = [choice.action for choice in watched if choice.action is not None]
        if plan.action is not None or not shadowed:
            return plan
        return replace(plan, reason=f"the decision on {shadowed[0].setting} is watched; else: {plan.reason}")

    def gate(self, state: CycleState) -> CycleState:
        """Rule on the planned change."""
        action = state["plan"].action
        if action is None:
            raise ValueError("the gate was reached without an action")
        return {"verdict": self.desk.check(action, state["snapshot"], as_move=True)}

    def is_move(self, state: CycleState) -> bool:
        """Whether the planned change is a move inside the envelope in force that the gate allows."""
        action, leave = state["plan"].action, self.desk.leave
        if action is None or leave is None or self.desk.mode is Mode.SHADOW:
            return False
        covered = all(leave.place((action.setting, target)) for target in targets_of(action, state["snapshot"]))
        return covered and state["verdict"].ruling is Ruling.ALLOW

    def approve(self, state: CycleState) -> CycleState:
        """Store proposal and verdict: denied, shadowed, waiting for a person, or approved in auto mode."""
        action = state["plan"].action
        if action is None:
            raise ValueError("approve was reached without an action")
        proposal = self.desk.journal.propose(
            action,
            state["verdict"],
            mode=self.desk.mode,
            now_s=self.desk.clock.now_s(),
            expiry_s=self.desk.policy.expiry_s(action.setting_class),
            key=state["key"],
        )
        return {"proposal": proposal}

    def execute(self, state: CycleState) -> CycleState:
        """Carry out what is approved, by whomever and whenever; the executor asks the gate once more."""
        executor, approved = self.desk.executor, self.desk.journal.records({State.APPROVED})
        if state["blind"] or self.desk.journal.records(IN_FLIGHT):
            return {"executed": ()}
        mode, snapshot = self.desk.mode, state["snapshot"]
        for allowed in self.desk.journal.envelopes.envelopes({EnvelopeState.APPROVED})[:1]:
            executor.open_envelope(allowed.id, mode=mode, snapshot=snapshot)
        if approved:
            return {"executed": (executor.apply(approved[0].id, mode=mode, snapshot=snapshot),)}
        action = state["plan"].action if "verdict" in state and self.is_move(state) else None
        if action is None:
            return {"executed": ()}
        return {"executed": (), "refused": executor.move(action, mode=mode, snapshot=snapshot) or ""}

    def verify(self, state: CycleState) -> CycleState:
        """Look at every open change: undo, wait, or keep. What was seen before a change says nothing about it."""
        if any(record.is_open for record in state.get("executed", ())):
            return {"verified": ()}
        seen, executor = None if state["blind"] else state["snapshot"], self.desk.executor
        return {"verified": executor.supervise(seen), "envelope": executor.watch_envelope(seen)}

    def remember(self, state: CycleState) -> CycleState:
        """Store an episode for every change that ended in this cycle; in shadow, watch what was decided."""
        for record in (*state.get("executed", ()), *state["verified"]):
            self.desk.remember(record, state["snapshot"])
        watch_choice(state, self.desk)
        return {}
