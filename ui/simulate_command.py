"""`flashvector simulate`: the simulated stack by itself."""

from typing import Annotated

import typer
from rich.console import Console

from agent.settings import Settings
from agent.simulated_run import SimulatedRun
from stack.simulator.fleet import FleetSpec
from stack.simulator.server import LOOPBACK, serve
from ui.add_model_command import add_model_command
from ui.bench_command import bench_command
from ui.models_command import models_command
from ui.validate_command import validate_rows

HOURS = 6.0

simulate = typer.Typer(help="The simulated stack by itself.", no_args_is_help=True)


simulate.command("bench")(bench_command)
simulate.command("add-model")(add_model_command)
simulate.command("models")(models_command)


@simulate.callback()
def _commands() -> None:
    """The simulated stack by itself."""


@simulate.command("serve")
def serve_metrics(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the loopback interface.")] = 9400,
    traffic: Annotated[str, typer.Option(help="Azure CSV or Mooncake JSONL file, or steady, ramp, spike.")] = "steady",
    load: Annotated[float, typer.Option(help="Mean load as a share of the fleet's capacity.")] = 0.6,
    fault: Annotated[list[str] | None, typer.Option(help="NAME@SECONDS; may be given several times.")] = None,
    replicas: Annotated[int, typer.Option(min=1, max=128, help="Replicas of the simulated fleet.")] = 4,
    speed: Annotated[float, typer.Option(min=0.1, max=1000, help="Stack seconds per second.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same traffic.")] = 0,
) -> None:
    """Answer /metrics with the text that a vLLM fleet behind HAProxy would show, until interrupted."""
    slo = Settings.load().policy().slo
    console = Console(stderr=True)
    with console.status("Building the simulated stack and finding its capacity"):
        stack = SimulatedRun(
            traffic=traffic,
            load=load,
            rate_scale=None,
            faults=tuple(fault or ()),
            fleet=FleetSpec(replicas=replicas),
            minutes=HOURS * 60,
            seed=seed,
            slo=slo,
        ).stack()
    console.print(f"http://{LOOPBACK}:{port}/metrics, {HOURS:g} hours of traffic; Ctrl-C ends it", highlight=False)
    serve(stack, port=port, speed=speed)


simulate.command("validate")(validate_rows)
