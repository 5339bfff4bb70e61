"""Which runtime commands put a setting's value in force."""

from stack.catalogue import UNLIMITED
from stack.local.configuration import LocalStack
from stack.local.gateway import layout
from stack.local.gateway.files import number_text
from stack.local.gateway.haproxy_config import limit_of
from stack.local.gateway.state import GatewayState
from stack.local.gateway.values import Values
from stack.setting import Value

_SERVED = (*layout.POLICY_BACKENDS, layout.BATCH)


def commands_for(name: str, target: str, value: Value, held: GatewayState, configuration: LocalStack) -> list[str]:
    """The commands that set an acceptable value, in their order."""
    if name == "routing_weight":
        backends = (*_SERVED, layout.REPLICAS)
        return [f"set server {backend}/{target} weight {int(float(value))}" for backend in backends]
    if name == "replica_state":
        return [f"set server {layout.REPLICAS}/{target} state {value}"]
    if name in layout.CHOICE_SETTINGS:
        return [f"set map {layout.CHOICES} {name} {value}"]
    after = changed(held.values, name, target, value)
    if name == "replica_concurrency_cap":
        return [limit_command(backend, target, after) for backend in _SERVED]
    number = f"set map {layout.NUMBERS} {name} {number_text(float(value))}"
    if name != "batch_in_flight_cap":
        return [number]
    limits = [limit_command(layout.BATCH, replica, after) for replica in configuration.names]
    return [number, *limits] if float(value) >= UNLIMITED else [*limits, number]


def limit_command(backend: str, replica: str, values: Values) -> str:
    """The command that gives a server the limit that follows from the settings."""
    return f"set maxconn server {backend}/{replica} {limit_of(backend, replica, values)}"


def changed(values: Values, name: str, target: str, value: Value) -> Values:
    """The settings with one value changed."""
    return {**values, name: {**values[name], target: value}}


def disagreement(name: str, target: str, held: GatewayState, configuration: LocalStack) -> str | None:
    """Where a backend's server holds something else than the setting says, in words, or None.

    It comes of a write that was broken off; writing the setting again mends it.
    """
    names = (target,) if target in configuration.names else configuration.names
    for backend in _SERVED if name in ("routing_weight", "replica_concurrency_cap") else (layout.BATCH,):
        for replica in names:
            server = held.servers[backend][replica]
            weight, limit = held.values["routing_weight"][replica], limit_of(backend, replica, held.values)
            if name == "routing_weight" and server.weight != weight:
                return f"{backend}/{replica} has weight {server.weight}, expected {weight:g}"
            if name in ("replica_concurrency_cap", "batch_in_flight_cap") and server.limit != limit:
                return f"{backend}/{replica} has limit {server.limit}, expected {limit}"
    return None
