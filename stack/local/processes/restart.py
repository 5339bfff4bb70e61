"""A rolling restart with the gateway and the engines that a stack has."""

from collections.abc import Sequence

from stack.local.configuration import LocalStack
from stack.local.processes.engine_limits import EngineLimits
from stack.local.processes.events import EventLog
from stack.local.processes.gateway_gate import GatewayGate
from stack.local.processes.rolling_restart import Restarted
from stack.local.processes.supervisor import Supervisor


def restart(configuration: LocalStack, names: Sequence[str], profile: str | None) -> list[Restarted]:
    """Restart replicas one at a time; see `stack.local.processes.rolling_restart.RollingRestart.restart`."""
    gate, limits = GatewayGate(configuration), EngineLimits(configuration)
    tell = EventLog(configuration.run_folder).add
    return Supervisor(configuration, ()).restart(names, profile, gate, limits, tell)
