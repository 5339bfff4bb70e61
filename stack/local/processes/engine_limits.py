"""The limits inside an engine, carried over its restart through the routes of our vLLM plugin."""

from collections.abc import Mapping
from contextlib import closing

from stack.errors import UnknownSettingError
from stack.local.configuration import LocalStack
from stack.local.engine.client import EngineClient


class EngineLimits:
    """What was set in engines since their start.

    Args:
        stack: says where the replicas are.
    """

    def __init__(self, stack: LocalStack) -> None:
        self._stack = stack

    def read(self, replica: str) -> Mapping[str, int]:
        """Limits that differ from those the engine booted with; none without the plugin.

        Raises:
            UnreachableError: the engine does not answer.
        """
        with closing(EngineClient.of(self._stack, replica)) as engine:
            try:
                state = engine.limits()
            except UnknownSettingError:
                return {}
        return {name: value for name, value in state["limits"].items() if value != state["boot"][name]}

    def restore(self, replica: str, limits: Mapping[str, int]) -> None:
        """Set them again.

        Raises:
            UnreachableError: the engine does not answer.
            StackError: it does not take them; it has those of its start.
        """
        if limits:
            with closing(EngineClient.of(self._stack, replica, writes=True)) as engine:
                engine.change_limits(limits)
