"""The values in force on a local stack, read from gateway and engines by ways that cannot change anything."""

from collections.abc import Mapping
from dataclasses import dataclass

from stack.errors import FlashVectorError
from stack.local.configuration import LocalStack
from stack.local.engine.facts import EngineReader
from stack.local.gateway.held import held
from stack.local.processes.launches import launched
from stack.setting import Value


@dataclass(frozen=True)
class InForce:
    """What was read.

    Attributes:
        settings: value per setting and target; what could not be read is absent.
        configuration: per replica, what bounds its settings and what its steps cost.
        problems: why something is absent, one line each.
    """

    settings: Mapping[str, Mapping[str, Value]]
    configuration: Mapping[str, Mapping[str, Value]]
    problems: tuple[str, ...]


class ValuesInForce:
    """Reads them.

    Args:
        configuration: the stack.
    """

    def __init__(self, configuration: LocalStack) -> None:
        self._configuration, self._engines = configuration, EngineReader(configuration)

    def now(self) -> InForce:
        """What holds now. Who does not answer is a problem named, not an error."""
        engines = self._engines.facts()
        settings, problems = dict(engines.settings), list(engines.problems)
        try:
            settings |= held(self._configuration).values
        except FlashVectorError as error:
            problems.append(f"the gateway's settings could not be read: {error}")
        try:
            settings |= launched(self._configuration)
        except FlashVectorError as error:
            problems.append(str(error))
        return InForce(settings, engines.configuration, tuple(problems))

    def close(self) -> None:
        """Close all connections."""
        self._engines.close()
