"""`flashvector stack`: start, look at, restart and end the processes of a local stack."""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from stack.local.configuration import read_stack
from stack.local.control import LocalControl
from stack.local.processes.engine_limits import EngineLimits
from stack.local.processes.process import ManagedProcess
from stack.local.processes.services import WATCH
from stack.local.processes.supervisor import Status, Supervisor
from stack.local.processes.watch import watch as watch_over
from stack.local.processes.watching import keepers, teller

stack = typer.Typer(help="Real vLLM replicas behind HAProxy on this machine.", no_args_is_help=True)

Config = Annotated[Path, typer.Option("-c", "--config", help="File that describes a stack, as deploy/local-cpu.toml.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@stack.command("up")
def up(config: Config, as_json: AsJson = False) -> None:
    """Start what does not run yet, wait until it serves, and keep it alive from then on."""
    supervisor = _supervisor(config)
    supervisor.up(_say(quiet=as_json))
    _show(supervisor.status(), as_json)


@stack.command("status")
def status(config: Config, as_json: AsJson = False) -> None:
    """Say of each process where it listens, since when it runs and whether it serves; exit code 1 when one does not."""
    found = _supervisor(config).status()
    _show(found, as_json)
    if any(one.trouble for one in found):
        raise typer.Exit(1)


@stack.command("down")
def down(config: Config, as_json: AsJson = False) -> None:
    """End user traffic, then everything else. What was written to the stack is remembered for the next start."""
    supervisor = _supervisor(config)
    supervisor.down(_say(quiet=as_json))
    if as_json:
        _show(supervisor.status(), as_json)


@stack.command("restart")
def restart(
    config: Config,
    replicas: Annotated[list[str] | None, typer.Argument(metavar="[REPLICA]...", help="Default: all of them.")] = None,
    profile: Annotated[str | None, typer.Option(help="Execution profile to start them with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Restart replicas one at a time, without a failed request."""
    from stack.local.processes.gateway_gate import GatewayGate

    supervisor, say = _supervisor(config), _say(quiet=as_json)
    configuration = supervisor.stack
    tell = teller(configuration, say)
    done = supervisor.restart(replicas or (), profile, GatewayGate(configuration), EngineLimits(configuration), tell)
    if as_json:
        typer.echo(json.dumps({"restarted": [asdict(one) for one in done]}, indent=2))


@stack.command("watch")
def watch(config: Config) -> None:
    """Keep the stack alive in the foreground, until interrupted; the processes go on. `up` starts this by itself."""
    configuration = read_stack(config)
    ManagedProcess(WATCH, configuration.run_folder).enlist()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    tell = teller(configuration, _say(quiet=False))
    with closing(LocalControl.of(configuration)) as control:
        watch_over(keepers(configuration, control.write, tell), configuration.run_folder, tell, stop)


def _supervisor(config: Path) -> Supervisor:
    command = ("-c", "from ui.command import main; main()", "stack", "watch", "--config", str(config.absolute()))
    return Supervisor(read_stack(config), (sys.executable, *command))


def _say(*, quiet: bool) -> Callable[[str], None]:
    console = Console(stderr=quiet, soft_wrap=True)
    return lambda line: console.print(line, markup=False, highlight=False)


def _show(found: list[Status], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"services": [asdict(one) for one in found]}, indent=2))
    else:
        Console(soft_wrap=True).print(_table(found))


def _table(found: list[Status]) -> Table:
    table = Table(box=None)
    for name in ("service", "url", "pid", "since", "profile", "state"):
        table.add_column(name, no_wrap=name != "state")
    for one in found:
        since = time.strftime("%m-%d %H:%M:%S", time.localtime(one.since_s)) if one.since_s else ""
        state = "serves" if one.trouble is None else one.trouble
        pid = "" if one.pid is None else str(one.pid)
        table.add_row(one.name, one.url or "", pid, since, one.profile or "", state)
    return table
