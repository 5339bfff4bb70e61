"""Setting limits of the engines, and reading them back."""

from collections.abc import Mapping
from typing import Any

from stack.catalogue import setting_named
from stack.errors import ReadBackError, RefusedError, UnknownSettingError
from stack.local.configuration import LocalStack
from stack.local.engine.client import EngineClient, NotTakenError
from stack.local.engine.limits import LIMIT_OF, held_value, limit_value, span
from stack.setting import Setting, Value


class EngineControl:
    """Settings between two engine steps of each replica; see stack.control.StackControl."""

    def __init__(self, configuration: LocalStack) -> None:
        self._clients = {name: EngineClient.of(configuration, name, writes=True) for name in configuration.names}

    def read(self, setting: str, target: str) -> Value:
        """The limit in force.

        Raises:
            UnknownSettingError: not a setting of an engine, no such replica, or its vLLM has no plugin.
            UnreachableError: the engine does not answer.
        """
        return held_value(self._declared(setting, target).name, self._clients[target].limits())

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Set a limit; it counts from the next engine step on. What runs above a lowered cap ends by itself.

        Raises:
            UnknownSettingError, UnreachableError: as for `read`.
            RefusedError: the value is out of the setting's or this engine's bounds, or at odds with another limit.
            ReadBackError: the engine took another value.
        """
        declared, client = self._declared(setting, target), self._clients[target]
        state = client.limits()
        held = held_value(setting, state)
        problem = declared.problem_with(value) or self._problem(declared, target, float(value), state)
        if problem is not None:
            raise RefusedError(problem, held)
        wanted = limit_value(setting, float(value), state)
        try:
            after = client.change_limits({LIMIT_OF[setting]: wanted})
        except NotTakenError as error:
            raise RefusedError(f"{setting}: {error}", held) from error
        if limit_value(setting, float(held_value(setting, after)), after) != wanted:
            raise ReadBackError(f"{setting} of {target}: wrote {value!r}", held_value(setting, after))
        return value

    @property
    def names(self) -> tuple[str, ...]:
        """The replicas."""
        return tuple(self._clients)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def _declared(self, setting: str, target: str) -> Setting:
        declared = setting_named(setting)
        if setting not in LIMIT_OF:
            raise UnknownSettingError(f"{setting} is not a setting of an engine; those are {', '.join(LIMIT_OF)}")
        if target not in self._clients:
            raise UnknownSettingError(f"no {setting} of {target!r}; replicas are {', '.join(self._clients)}")
        return declared

    def _problem(self, declared: Setting, target: str, value: float, state: Mapping[str, Any]) -> str | None:
        """Why this engine cannot take `value`: what it was started with, or another limit."""
        low, high = span(declared.name, state)
        if not low - 1e-9 <= value <= high + 1e-9:
            given = f"{declared.name} of {target}: this engine takes {low:g} to {high:g} {declared.unit}"
            return f"{given} as it was started, not {value:g}"
        limits = state["limits"]
        per_request = 1 + int(limits.get("speculative_tokens", 0))
        cap = int(value) if declared.name == "running_request_cap" else int(limits["running_request_cap"])
        tokens = int(value) if declared.name == "tokens_per_step" else int(limits["tokens_per_step"])
        if declared.name in ("running_request_cap", "tokens_per_step") and cap * per_request > tokens:
            return f"{cap} running requests need {cap * per_request} tokens per step on {target}, not {tokens}"
        return None
