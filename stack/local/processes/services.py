"""The services of a stack that we manage, and the one place that knows who describes each."""

import signal
from collections.abc import Iterator, Sequence
from functools import partial

from stack.local.admission import numbers
from stack.local.configuration import LocalStack
from stack.local.gateway.files import write_files as write_gateway_files
from stack.local.gateway.launch import command as gateway_command
from stack.local.gateway.values import Start
from stack.local.processes.held_values import HeldValues, lost_with_gateway
from stack.local.processes.process import ManagedProcess
from stack.local.processes.program import program
from stack.local.processes.readiness import page_trouble
from stack.local.processes.replica_process import replica_service
from stack.local.processes.service import Kind, Launch, Service
from stack.local.reading import prometheus_files
from stack.setting import Value

GATEWAY, HISTORY, WATCH = "gateway", "history", "watch"
SMALL_READY_S = 30.0


def services(stack: LocalStack) -> tuple[Service, ...]:
    """Those of the configuration that we start and stop: replicas, gateway, history."""
    return tuple(_services(stack))


def _services(stack: LocalStack) -> Iterator[Service]:
    for replica in stack.replicas:
        if replica.managed:
            yield replica_service(stack, replica)
    if stack.gateway.managed:
        yield _gateway(stack)
    if stack.history is not None and stack.history.managed:
        yield _history(stack, stack.history.url)


def watch_service(stack: LocalStack, command: Sequence[str]) -> Service:
    """The watcher in the background, started by `command`."""
    return Service(
        name=WATCH,
        kind=Kind.WATCH,
        urls=(),
        launch=lambda: Launch((program(command[0]), *command[1:])),
        trouble=lambda: None,
        process=ManagedProcess(WATCH, stack.run_folder),
        ready_s=SMALL_READY_S,
        grace_s=60.0,  # it may be in the middle of a start
    )


def _gateway(stack: LocalStack) -> Service:
    return Service(
        name=GATEWAY,
        kind=Kind.GATEWAY,
        urls=(stack.gateway.url, stack.gateway.metrics_url),
        launch=partial(_gateway_launch, stack),
        trouble=partial(page_trouble, f"{stack.gateway.metrics_url}/metrics"),
        process=ManagedProcess(GATEWAY, stack.run_folder),
        ready_s=SMALL_READY_S,
        grace_s=stack.engine.drain_s,
        end=signal.SIGUSR1,  # HAProxy takes no new connection and ends with the last one
    )


def _gateway_launch(stack: LocalStack) -> Launch:
    values: dict[str, dict[str, Value]] = {}
    for one in lost_with_gateway(HeldValues(stack.run_folder).read()):
        values.setdefault(one.setting, {})[one.target] = one.value
    write_gateway_files(stack, Start(values, numbers(stack)))
    name, *arguments = gateway_command(stack)
    return Launch((program(name), *arguments))


def _history(stack: LocalStack, url: str) -> Service:
    return Service(
        name=HISTORY,
        kind=Kind.HISTORY,
        urls=(url,),
        launch=partial(_history_launch, stack),
        trouble=partial(page_trouble, f"{url}/-/ready"),
        process=ManagedProcess(HISTORY, stack.run_folder),
        ready_s=SMALL_READY_S,
    )


def _history_launch(stack: LocalStack) -> Launch:
    prometheus_files.write_files(stack)
    name, *arguments = prometheus_files.command(stack)
    return Launch((program(name), *arguments))
