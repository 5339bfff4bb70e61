"""What the engines tell through the plugin: limits in force, their bounds, and how long steps take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stack.errors import StackError
from stack.local.configuration import LocalStack
from stack.local.engine.client import EngineClient
from stack.local.engine.limits import LIMIT_OF, held_value, span
from stack.local.engine.step_times import StepTimes
from stack.redaction import clean
from stack.setting import Value
from stack.snapshot import least_of, most_of


@dataclass(frozen=True)
class EngineFacts:
    """What the engines told just now.

    Attributes:
        settings: value in force per setting and replica; replicas that did not tell are absent.
        configuration: per replica, what bounds its settings and what its steps cost.
        problems: why something is absent, one line each.
    """

    settings: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    configuration: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class EngineReader:
    """Asks all engines of a stack; it cannot change anything."""

    def __init__(self, configuration: LocalStack) -> None:
        self._clients = {name: EngineClient.of(configuration, name) for name in configuration.names}
        self._steps = {name: StepTimes() for name in configuration.names}

    def facts(self) -> EngineFacts:
        """What the engines tell now; an engine that does not answer is a problem named, not an error."""
        settings: dict[str, dict[str, Value]] = {}
        configuration: dict[str, dict[str, Value]] = {}
        problems: list[str] = []
        for name, client in self._clients.items():
            try:
                state = client.steps(self._steps[name].since)
                for setting in LIMIT_OF:
                    settings.setdefault(setting, {})[name] = held_value(setting, state)
                self._steps[name].add(state)
                configuration[name] = bounds_told(state) | self._steps[name].facts()
                problems += _failures(name, state)
            except StackError as error:
                problems.append(str(error))
        return EngineFacts(settings, configuration, tuple(problems))

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()


def bounds_told(state: Mapping[str, Any]) -> dict[str, Value]:
    """Lowest and highest value of each setting as the engine was started, under the names a snapshot looks for."""
    told: dict[str, Value] = {}
    for setting in LIMIT_OF:
        told[least_of(setting)], told[most_of(setting)] = span(setting, state)
    return told


def _failures(name: str, state: Mapping[str, Any]) -> list[str]:
    """A plugin that failed inside the engine runs with its boot limits until the next change."""
    if not state.get("degraded"):
        return []
    failure = state.get("failure")
    what = failure.get("what") if isinstance(failure, dict) else failure
    return [f"{name}: the plugin gave up inside the engine, which runs with its boot limits: {clean(str(what))[:160]}"]
