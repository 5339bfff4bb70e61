"""The gateway's settings, written through HAProxy's runtime socket and read back from it."""

from collections.abc import Iterator, Mapping

from stack.catalogue import setting_named
from stack.errors import ReadBackError, RefusedError, StackError, UnknownSettingError
from stack.local.configuration import LocalStack
from stack.local.gateway import layout
from stack.local.gateway.commands import commands_for, disagreement
from stack.local.gateway.files import number_text
from stack.local.gateway.runtime import RuntimeSocket
from stack.local.gateway.state import COMMANDS, GatewayState, state_from
from stack.local.gateway.values import Values
from stack.local.gateway.workers import sessions_of_former_workers
from stack.setting import Scope, Setting, Value
from stack.snapshot import FLEET


class GatewayControl:
    """`stack.control.StackControl` for the settings of the routing layer.

    A value is in force for the next request. Raising the concurrency cap of one replica lets it take what waits at the
    gateway at once; who wants to raise several should do so in small steps, in turns, or the first swallows the queue.
    """

    def __init__(self, configuration: LocalStack) -> None:
        self._configuration = configuration
        self._socket = RuntimeSocket(layout.folder_of(configuration) / layout.ADMIN_SOCKET)

    def state(self) -> GatewayState:
        """Everything held now.

        Raises:
            UnreachableError: nothing answered.
        """
        return state_from({command: self._socket.ask(command) for command in COMMANDS}, self._configuration)

    def read(self, setting: str, target: str) -> Value:
        """The value in force now.

        Raises:
            UnknownSettingError: no such setting of the gateway, or not on that target.
            UnreachableError: nothing answered.
        """
        located = self._located(setting, target)
        return self.state().values[located.name][target]

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Set the value and return what was read back.

        Raises:
            UnknownSettingError: no such setting of the gateway, or not on that target.
            UnreachableError: nothing answered, so whether it was set is unknown until a read answers.
            RefusedError: the value is not acceptable, or HAProxy refused it.
            ReadBackError: it was sent, but another value was read back, or not all backends hold it.
        """
        located = self._located(setting, target)
        before = self.state()
        problem = located.problem_with(value)
        if problem is not None:
            raise RefusedError(problem, before.values[setting][target])
        for command in commands_for(setting, target, value, before, self._configuration):
            self._order(command, setting, target)
        after = self.state()
        self._check(setting, target, value, after)
        return after.values[setting][target]

    def set_slots(self, replica: str, running_cap: float) -> None:
        """Tell the admission rules how many requests the replica's engine runs at once.

        Raises:
            InputError: no such replica.
            UnreachableError, RefusedError: as for `write`.
        """
        self._set_number(f"{layout.SLOTS}{self._configuration.replica(replica).name}", running_cap)

    def set_ttft_limits(self, limit_s: float, limit_s_per_prompt_token: float, batch_limit_s: float) -> None:
        """Tell deadline shedding what its ratio refers to: seconds, seconds per prompt token, seconds.

        Raises:
            UnreachableError, RefusedError: as for `write`.
        """
        self._set_number(layout.TTFT_LIMIT_S, limit_s)
        self._set_number(layout.TTFT_LIMIT_S_PER_TOKEN, limit_s_per_prompt_token)
        self._set_number(layout.BATCH_TTFT_LIMIT_S, batch_limit_s)

    def sessions(self, replica: str) -> int:
        """Requests at the replica or waiting for it alone, those of workers that a reload has replaced included.

        Raises:
            InputError: no such replica.
            UnreachableError: nothing answered.
        """
        name = self._configuration.replica(replica).name
        return self.state().sessions(name) + sessions_of_former_workers(self._configuration, name)

    def restore(self, values: Values, numbers: Mapping[str, float] | None = None) -> tuple[str, ...]:
        """Write back what an earlier state held, after a reload or restart, and return what differed.

        Args:
            values, numbers: as in `GatewayState`.

        All is tried before the first error is raised.

        Raises:
            StackError: as for `write`.
        """
        held, mended, failed = self.state(), [], []
        for setting, target, value in _each(values):
            if held.values[setting][target] == value and not disagreement(setting, target, held, self._configuration):
                continue
            try:
                self.write(setting, target, value)
                mended.append(f"{setting} {target}")
            except StackError as error:
                failed.append(error)
        for name, number in (numbers or {}).items():
            if held.numbers.get(name) != number:
                self._set_number(name, number)
                mended.append(name)
        if failed:
            raise failed[0]
        return tuple(mended)

    def _set_number(self, name: str, number: float) -> None:
        if not number >= 0 or number == float("inf"):
            raise RefusedError(f"{name} must be a number of at least 0, not {number!r}", self.state().numbers.get(name))
        answer = self._socket.ask(f"set map {layout.NUMBERS} {name} {number_text(float(number))}")
        held = self.state().numbers.get(name)
        if held != number:
            raise RefusedError(f"HAProxy did not take {name} = {number:g}: {answer or 'no reason given'}", held)

    def _order(self, command: str, setting: str, target: str) -> None:
        answer = self._socket.ask(command)
        if answer:
            held = self.state().values[setting][target]
            raise RefusedError(f"HAProxy answered {answer!r} to {command!r}", held)

    def _check(self, setting: str, target: str, value: Value, after: GatewayState) -> None:
        held = after.values[setting][target]
        if held != value:
            raise ReadBackError(f"{setting} of {target} was set to {value!r}, read back was {held!r}", held)
        uneven = disagreement(setting, target, after, self._configuration)
        if uneven is not None:
            raise ReadBackError(f"{setting} of {target} was set to {value!r}, but {uneven}", held)

    def _located(self, name: str, target: str) -> Setting:
        setting = setting_named(name)
        if setting not in layout.GATEWAY_SETTINGS:
            raise UnknownSettingError(f"{name} is a setting of the {setting.layer} layer, not of the gateway")
        targets = (FLEET,) if setting.scope is Scope.POOL else self._configuration.names
        if target not in targets:
            raise UnknownSettingError(f"{name} does not exist on {target!r}; it does on {', '.join(targets)}")
        return setting


def _each(values: Values) -> Iterator[tuple[str, str, Value]]:
    for setting, targets in values.items():
        for target, value in targets.items():
            yield setting, target, value
