"""Writing to a local stack: each setting goes to whoever holds it, and what was written is remembered."""

import logging
from typing import Self

from stack.catalogue import setting_named
from stack.errors import StackError
from stack.layer import Layer
from stack.local.admission import CAP, Promise
from stack.local.configuration import LocalStack
from stack.local.engine.control import EngineControl
from stack.local.engine.limits import LIMIT_OF
from stack.local.gateway.control import GatewayControl
from stack.local.processes.held_values import HeldValues
from stack.local.processes.launches import Launches
from stack.setting import Value

LOG = logging.getLogger(__name__)


class LocalControl:
    """All settings of a local stack; see stack.control.StackControl for the contract and its errors.

    Args:
        gateway: routing and admission.
        engines: limits between two engine steps.
        launches: what takes a restart.
        held: where written values are remembered, for engines and gateway forget them when they start anew.
    """

    def __init__(self, gateway: GatewayControl, engines: EngineControl, launches: Launches, held: HeldValues) -> None:
        self._gateway, self._engines, self._launches, self._held = gateway, engines, launches, held

    @classmethod
    def of(cls, configuration: LocalStack) -> Self:
        """The control of a stack, to be closed."""
        gateway, engines = GatewayControl(configuration), EngineControl(configuration)
        return cls(gateway, engines, Launches(configuration), HeldValues(configuration.run_folder))

    def close(self) -> None:
        """Close all connections."""
        self._engines.close()

    def read(self, setting: str, target: str) -> Value:
        """The value in force now; see `stack.control.StackControl.read`."""
        return self._holder(setting).read(setting, target)

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Set it and return what was read back; see `stack.control.StackControl.write`."""
        holder = self._holder(setting)
        if holder is self._launches:
            return holder.write(setting, target, value)
        with self._held.writing():
            found = holder.write(setting, target, value)
            self._held.put(setting, target, found)
        if setting == CAP:
            self._gateway.set_slots(target, int(found))
        return found

    def align(self, promise: Promise) -> None:
        """Tell the gateway's admission rules what is promised and how many requests each engine runs at once.

        What cannot be told now is logged: without it those rules refuse less than they should.
        """
        limits = (promise.ttft_s, promise.ttft_s_per_prompt_token, promise.batch_ttft_s)
        try:
            self._gateway.set_ttft_limits(*limits)
            for name in self._engines.names:
                self._gateway.set_slots(name, float(self._engines.read(CAP, name)))
        except StackError as error:
            LOG.warning("admission rules of the gateway: %s", error)

    def _holder(self, setting: str) -> GatewayControl | EngineControl | Launches:
        declared = setting_named(setting)
        if setting in LIMIT_OF:
            return self._engines
        return self._gateway if declared.layer is Layer.ROUTING else self._launches
