"""Permitting: the last look before a permit is committed, with values and facts read just now."""

from collections.abc import Callable

from harness.execution.actuator import Actuator
from harness.execution.held import same
from harness.gate.case import targets_of
from harness.gate.check import check
from harness.gate.history import History
from harness.journal.record import Permit, Record, Step
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import Ruling, Verdict
from harness.verification.block import BlockLog
from stack.catalogue import in_words
from stack.clock import Clock
from stack.snapshot import Snapshot


class Refusal(Exception):  # noqa: N818 - a reason to do nothing, not an error
    """The action must not be done; the text says why."""


class Permitting:
    """Makes the permit of an approved action."""

    def __init__(
        self,
        actuator: Actuator,
        policy: Policy,
        clock: Clock,
        blocks: BlockLog,
        history: Callable[[], History],
        *,
        simulated: bool,
    ) -> None:
        self._actuator, self._policy, self._clock, self._blocks = actuator, policy, clock, blocks
        self._history, self._simulated = history, simulated

    def permit(self, record: Record, version: int, mode: Mode, snapshot: Snapshot) -> Permit:
        """Values read back just now, the writes, and the second verdict.

        Args:
            version: the state of the stack before anything else was read; whatever changes since makes the permit void.

        Raises:
            Refusal, StackError: the action must not be done.
        """
        action = record.action
        if mode is Mode.SHADOW:
            raise Refusal("shadow mode never acts")
        verdict = self._verdict(record, mode, snapshot)
        require(verdict, asked=record.approval is not None)
        self._blocks.close(snapshot)
        targets = targets_of(action, snapshot)
        steps = tuple(Step(target, self._actuator.read(action.setting, target), action.after) for target in targets)
        moved = [step for step in steps if not same(step.pre, action.before)]
        if moved:
            expected = f"expected {action.setting} on {moved[0].target} to be {in_words(action.before)}"
            raise Refusal(f"{expected}, read back {in_words(moved[0].pre)}")
        return Permit(steps, verdict, version)

    def _verdict(self, record: Record, mode: Mode, snapshot: Snapshot) -> Verdict:
        now_s, history = self._clock.now_s(), self._history()
        return check(record.action, snapshot, history, self._policy, mode=mode, now_s=now_s, simulated=self._simulated)


def require(verdict: Verdict, *, asked: bool) -> None:
    """Only what is allowed passes, or what would be asked and was.

    Raises:
        Refusal: the verdict's reasons.
    """
    if verdict.ruling is Ruling.DENY or (verdict.ruling is Ruling.ASK and not asked):
        raise Refusal("; ".join(f"{hit.rule}: {hit.detail}" for hit in verdict.hits))
