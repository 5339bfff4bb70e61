"""The actuator: the one hand that writes to a stack, and only what a committed permit says."""

import logging

from harness.errors import LeaseLostError, StoreError
from harness.execution.held import Held, same, steps_of
from harness.journal.journal import Journal
from harness.journal.record import Record, Step
from stack.catalogue import in_words
from stack.control import StackControl
from stack.errors import StackError, UnreachableError
from stack.setting import Value

LOG = logging.getLogger(__name__)


class Actuator:
    """Sends an action's writes and its undo, each only while the lease is ours.

    What remains is a process that is paused within the call to the stack itself, for no stack that is known checks an
    epoch.
    """

    def __init__(self, control: StackControl, journal: Journal) -> None:
        self._control, self._journal = control, journal

    def read(self, setting: str, target: str) -> Value:
        """The value in force; see stack.control.StackControl.read."""
        return self._control.read(setting, target)

    def held(self, record: Record) -> Held | None:
        """What the stack holds on each target of an action; None when it does not answer."""
        try:
            return {step.target: self._control.read(record.action.setting, step.target) for step in steps_of(record)}
        except UnreachableError as error:
            LOG.warning("action %s: cannot read back: %s", record.id, error)
            return None
        except StackError as error:
            LOG.warning("action %s: cannot read back: %s", record.id, error)
            return {step.target: "unreadable" for step in steps_of(record)}

    def write(self, record: Record) -> str | None:
        """Send the writes of an armed action until one fails, somebody else wrote, or changes are frozen; in words.

        Whatever comes back, only reading back decides what happened.

        Raises:
            LeaseLostError: somebody else may write by now.
            StoreError: whether that is so cannot be known.
        """
        whose, setting = f"action {record.id}", record.action.setting
        failed = (self.write_once(whose, setting, step) for step in steps_of(record))
        return next((why for why in failed if why is not None), None)

    def write_once(self, whose: str, setting: str, step: Step) -> str | None:
        """One write of what is permitted, after a look at lease, freeze and value; why it was not made, in words.

        Raises: as `write`.
        """
        frozen = self._journal.hold()
        if frozen is not None:
            return f"not written to {step.target}: changes are frozen: {frozen}"
        try:
            found = self._control.read(setting, step.target)
            if not same(found, step.pre):
                return f"not written to {step.target}: expected {in_words(step.pre)}, read {in_words(found)}"
            self.send(whose, setting, step.target, step.wanted)
        except StackError as error:
            return f"write to {step.target} failed: {error}"
        return None

    def undo(self, record: Record) -> Held | None:
        """Write the stored values, last one first, and read back; also where they are held already.

        A replica that has just restarted shows the former value and will be given the last one written to it.

        Raises:
            LeaseLostError: somebody else may write by now. While it is surely ours, a broken store does not matter.
        """
        for step in reversed(steps_of(record)):
            self.hold_if_possible()
            try:
                self.send(f"action {record.id}", record.action.setting, step.target, step.pre)
            except StackError as error:
                LOG.warning("action %s: undo on %s failed: %s", record.id, step.target, error)
        return self.held(record)

    def send(self, whose: str, setting: str, target: str, value: Value) -> None:
        """One write, which what `whose` names has a permit for.

        Raises:
            LeaseLostError: the lease is not surely ours, so nothing was sent.
            StackError: it was not taken, or its reply was lost.
        """
        if not self._journal.surely_held:
            raise LeaseLostError(f"{whose}: paused for too long before writing to {target}, so nothing was sent")
        self._control.write(setting, target, value)

    def hold_if_possible(self) -> None:
        """Renew the lease before an undo; where the store fails, our clock says whether it is still ours."""
        try:
            self._journal.hold()
        except StoreError as error:
            LOG.warning("the store fails, so the lease is judged by our clock: %s", error)
