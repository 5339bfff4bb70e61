"""What the watcher keeps alive in a given stack, and how it looks at each."""

from collections.abc import Callable
from functools import partial
from time import monotonic

from stack.local.configuration import LocalStack
from stack.local.processes.events import EventLog, Tell, What
from stack.local.processes.heartbeat import Heartbeat, death, progress
from stack.local.processes.held_values import HeldValue, HeldValues, Write, lost_with_engine, lost_with_gateway
from stack.local.processes.keeper import Beat, Keeper
from stack.local.processes.service import Kind, Service
from stack.local.processes.services import services

Lost = Callable[[tuple[HeldValue, ...]], list[HeldValue]]


def keepers(stack: LocalStack, write: Write, tell: Tell) -> tuple[Keeper, ...]:
    """One for each service that we manage.

    Args:
        stack: the configuration.
        write: sets a value in the stack, to give back what a restart lost.
        tell: hears what happens.
    """
    return tuple(_keeper(stack, service, write, tell) for service in services(stack))


def _keeper(stack: LocalStack, service: Service, write: Write, tell: Tell) -> Keeper:
    beat = partial(_engine_beat, stack, service.urls[0]) if service.kind is Kind.REPLICA else None
    restore = partial(_restored, stack, _lost_with(service), write)
    return Keeper(service, beat, restore, tell, stack.run_folder)


def teller(stack: LocalStack, say: Callable[[str], None]) -> Tell:
    """Writes events into the run folder and says them."""
    log = EventLog(stack.run_folder)

    def tell(what: What, target: str, text: str) -> None:
        log.add(what, target, text)
        say(f"{what} {target}: {text}")

    return tell


def _engine_beat(stack: LocalStack, url: str) -> Beat:
    heartbeat, access = Heartbeat(url, stack.engine.stuck_s), stack.engine_access(writes=False)

    def beat() -> str | None:
        look = progress(url, access)
        return (death(url) if look is None else None) or heartbeat.trouble(look, monotonic())

    return beat


def _lost_with(service: Service) -> Lost:
    if service.kind is Kind.REPLICA:
        return lambda values: lost_with_engine(values, service.name)
    return lost_with_gateway if service.kind is Kind.GATEWAY else lambda values: []


def _restored(stack: LocalStack, lost_of: Lost, write: Write) -> tuple[list[str], list[str]]:
    held = HeldValues(stack.run_folder)
    return held.restore(lost_of(held.read()), write)
