"""`flashvector simulate bench`: how fast the simulator runs on this machine."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stack.simulator.engine.kernels import kernels
from stack.simulator.speed import CASES, measured
from ui.json_file import check_writable, write_json


def bench_command(
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Simulated seconds per second of CPU time: 512 prompt and 128 output tokens, prefix cache and metrics on."""
    if json_path is not None:
        check_writable(json_path)
    kernels(None)
    figures = measured()
    if json_path is not None:
        write_json(json_path, figures)
    Console().print(table_of(figures))


def table_of(figures: dict[str, Any]) -> Table:
    """One line per case."""
    table = Table(title="Simulated seconds per CPU second", caption=f"most memory: {figures['rss_mb']:.0f} MB")
    for name in ("engine", "replicas", "req/s", "figure"):
        table.add_column(name, justify="left" if name == "engine" else "right")
    for name, figure in figures["sim_s_per_cpu_s"].items():
        rate, replicas, _, compiled, macro_steps = CASES[name]
        engine = ("numba" if compiled else "plain Python") + ("" if macro_steps else ", step by step")
        table.add_row(engine, str(replicas), f"{rate:g}", f"{figure:,.0f}")
    return table
