"""What the gateway holds at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from stack.catalogue import POLICIES, UNLIMITED
from stack.errors import UnreachableError
from stack.local.configuration import LocalStack
from stack.local.gateway import answers, layout
from stack.local.gateway.answers import Boot, Server
from stack.local.gateway.values import Values
from stack.setting import Value
from stack.snapshot import FLEET

COMMANDS = (
    answers.INFO,
    f"show map {layout.CHOICES}",
    f"show map {layout.NUMBERS}",
    answers.SERVERS,
    answers.STATISTICS,
)


@dataclass(frozen=True)
class GatewayState:
    """Everything in force.

    Attributes:
        boot: the process that answered.
        values: {setting: {target: value}} of all the gateway's settings.
        numbers: the other entries of the numbers map: TTFT limits in seconds, slots per replica.
        servers: {backend: {replica: ...}}.
        queued: requests that wait at the gateway for whichever replica is free first.
    """

    boot: Boot
    values: Values
    numbers: Mapping[str, float]
    servers: Mapping[str, Mapping[str, Server]]
    queued: int

    def sessions(self, replica: str) -> int:
        """Requests that are at the replica or wait for it alone, over all backends."""
        held = [servers[replica] for servers in self.servers.values() if replica in servers]
        return sum(server.sessions + server.queued for server in held)

    def status(self, replica: str) -> str:
        """UP, DOWN, DRAIN, MAINT or NOLB, and while a check's result is on its way for instance UP 1/2."""
        return self.servers[layout.REPLICAS][replica].status


def state_from(found: Mapping[str, str], configuration: LocalStack) -> GatewayState:
    """The state in the answers to `COMMANDS`.

    Raises:
        UnreachableError: what answered is not a gateway with this configuration.
    """
    try:
        choices = answers.entries_in(found[COMMANDS[1]])
        numbers = {key: float(value) for key, value in answers.entries_in(found[COMMANDS[2]]).items()}
        servers = answers.servers_in(found[answers.STATISTICS])
        drained = answers.out_of_rotation(found[answers.SERVERS], layout.REPLICAS)
        policy = choices["routing_policy"] if choices["routing_policy"] in POLICIES else POLICIES[0]
        in_force = servers[layout.policy_backend(policy)]
        values: dict[str, dict[str, Value]] = {
            "routing_weight": {name: float(in_force[name].weight) for name in configuration.names},
            "replica_state": {name: "drain" if name in drained else "ready" for name in configuration.names},
            "replica_concurrency_cap": {name: float(in_force[name].limit) or UNLIMITED for name in configuration.names},
            **{name: {FLEET: choices[name]} for name in layout.CHOICE_SETTINGS},
            **{name: {FLEET: numbers.pop(name)} for name in layout.NUMBER_SETTINGS},
        }
        boot = answers.boot_in(found[answers.INFO])
    except (KeyError, ValueError) as error:
        raise UnreachableError(f"what answers is not this stack's gateway: it lacks {error}") from error
    return GatewayState(boot, values, numbers, servers, answers.queued_in(found[answers.STATISTICS]))
