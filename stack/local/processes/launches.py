"""Settings that take a restart: which profile a replica is started with, and how often it was started anew."""

from collections.abc import Mapping
from pathlib import Path

from stack.catalogue import setting_named
from stack.errors import InputError, RefusedError, UnknownSettingError
from stack.local.configuration import LocalStack
from stack.local.processes.replica_process import profile_file
from stack.local.processes.restart import restart
from stack.local.processes.run_files import write_whole
from stack.setting import Setting, Value

PROFILE, GENERATION = "execution_profile", "worker_generation"


def launched(configuration: LocalStack) -> Mapping[str, Mapping[str, Value]]:
    """Value in force per setting and replica, of the replicas we start."""
    names = [replica.name for replica in configuration.replicas if replica.managed]
    return {
        PROFILE: {name: profile_file(configuration, name).read() for name in names},
        GENERATION: {name: _generation(configuration, name) for name in names},
    }


class Launches:
    """Reads and writes them; a write drains the replica, restarts it and gives it back. It takes a minute or more.

    Args:
        configuration: the stack.
    """

    def __init__(self, configuration: LocalStack) -> None:
        self._configuration = configuration

    def read(self, setting: str, target: str) -> Value:
        """What the replica was last started with.

        Raises:
            UnknownSettingError: no such setting, or a replica that somebody else starts.
        """
        self._check(setting, target)
        return launched(self._configuration)[setting][target]

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Restart the replica with the value.

        Raises:
            UnknownSettingError: as for `read`.
            RefusedError: not one of the values there are, or the replica does not serve with it and runs as before.
            StackError: the replica does not come back; the text says what it holds.
        """
        declared, held = self._check(setting, target), self.read(setting, target)
        problem = declared.problem_with(value)
        if problem is None and setting == PROFILE and value not in self._configuration.engine.profiles:
            problem = f"the configuration has no profile {value!r} for {target}"
        if problem is not None:
            raise RefusedError(problem, held)
        if value == held:
            return held
        restart(self._configuration, (target,), str(value) if setting == PROFILE else None)
        if setting == GENERATION:
            write_whole(_generation_file(self._configuration, target), f"{float(value):g}\n")
        return self.read(setting, target)

    def _check(self, setting: str, target: str) -> Setting:
        declared, managed = setting_named(setting), launched(self._configuration)
        if setting not in managed:
            raise UnknownSettingError(f"{setting} takes no restart; what does is {' and '.join(managed)}")
        if target not in managed[setting]:
            raise UnknownSettingError(f"no {setting} of {target!r}; we start {', '.join(managed[setting]) or 'none'}")
        return declared


def _generation_file(configuration: LocalStack, name: str) -> Path:
    return configuration.run_folder / f"{name}.generation"


def _generation(configuration: LocalStack, name: str) -> float:
    path = _generation_file(configuration, name)
    try:
        return float(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0.0
    except ValueError as error:
        raise InputError(f"{path}: expected a number of restarts: {error}") from error
