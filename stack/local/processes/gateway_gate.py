"""The gateway as a rolling restart sees it."""

from stack.local.configuration import LocalStack
from stack.local.gateway.control import GatewayControl

STATE, DRAINED, READY = "replica_state", "drain", "ready"


class GatewayGate:
    """Drains replicas and lets traffic back, see stack.local.processes.rolling_restart.Gate.

    Args:
        stack: the configuration.
    """

    def __init__(self, stack: LocalStack) -> None:
        self._control = GatewayControl(stack)

    def drain(self, replica: str) -> None:
        """Give it no new request; those it has go on."""
        self._control.write(STATE, replica, DRAINED)

    def ready(self, replica: str) -> None:
        """Give it requests again."""
        self._control.write(STATE, replica, READY)

    def is_drained(self, replica: str) -> bool:
        """Whether somebody keeps new requests from it."""
        return str(self._control.read(STATE, replica)) == DRAINED

    def serves(self, replica: str) -> bool:
        """Whether it is not drained, and its health checks succeed."""
        return str(self._control.state().status(replica)).startswith("UP")

    def sessions(self, replica: str) -> int:
        """Requests it has from the gateway now."""
        return int(self._control.sessions(replica))
