"""`flashvector run`: the loop on a stack for a number of minutes, without a screen."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agent.session import CycleReport, Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.mode import Mode
from stack.errors import InputError
from ui.episode import episode_json, episode_text
from ui.report import plain


def run(
    stack: Annotated[str, typer.Option(help="Which stack: sim.")] = "sim",
    traffic: Annotated[str, typer.Option(help="Azure CSV or Mooncake JSONL file, or steady, ramp, spike.")] = "steady",
    load: Annotated[float | None, typer.Option(help="Mean load as a share of the fleet's capacity.")] = None,
    rate_scale: Annotated[float | None, typer.Option(help="Or: multiply the traffic's own request rate.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="NAME@SECONDS; may be given several times.")] = None,
    model: Annotated[str, typer.Option(help="Model of the simulated fleet.")] = "llama-3.1-8b",
    gpu: Annotated[str, typer.Option(help="GPU of the simulated fleet.")] = "h100",
    replicas: Annotated[int, typer.Option(min=1, max=128, help="Replicas of the simulated fleet.")] = 4,
    minutes: Annotated[float, typer.Option(min=1, max=1440, help="Minutes of stack time.")] = 30.0,
    mode: Annotated[Mode, typer.Option(help="shadow decides but never acts; approve asks; auto acts.")] = Mode.AUTO,
    planner: Annotated[str, typer.Option(help="search (no LLM) or llm.")] = "search",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    slo_ttft: Annotated[float | None, typer.Option(help="Limit on time to first token, seconds.")] = None,
    slo_itl: Annotated[float | None, typer.Option(help="Limit on mean time between tokens, seconds.")] = None,
    store: Annotated[Path | None, typer.Option(help="Journal database; in memory if not given.")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write the result to this file.")] = None,
) -> None:
    """Run observe, diagnose, plan, gate, execute, verify and remember, and report every episode."""
    if stack != "sim":
        raise InputError(f"--stack: expected sim, found {stack!r}")
    if json_out is not None and not json_out.resolve().parent.is_dir():
        raise InputError(f"--json {json_out}: the folder {json_out.resolve().parent} does not exist")
    settings = Settings.load(slo_ttft_s=slo_ttft, slo_itl_s=slo_itl, store_path=store, planner=planner, mode=mode)
    console = Console(stderr=True)
    with console.status("Building the simulated stack and finding its capacity"):
        session = simulated_session(
            settings,
            traffic=traffic,
            load=load,
            rate_scale=rate_scale,
            faults=tuple(fault or ()),
            model=model,
            gpu=gpu,
            replicas=replicas,
            minutes=minutes,
            seed=seed,
        )
    _cycle_until_end(session, minutes, console)
    episodes = session.episodes()
    result = {
        "episodes": [episode_json(episode, session.started_s) for episode in episodes],
        "metrics": plain(session.score()),
        "seed": seed,
    }
    if json_out is not None:
        json_out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    for episode in episodes:
        console.print(episode_text(episode, session.started_s))
    if not episodes:
        console.print("No change was made.")


def _cycle_until_end(session: Session, minutes: float, console: Console) -> None:
    share = TextColumn("{task.percentage:.0f} %")
    columns = (TextColumn("{task.description}"), BarColumn(), share, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("observing", total=minutes * 60)
        while session.elapsed_s < minutes * 60:
            report: CycleReport = session.cycle()
            progress.update(task, completed=session.elapsed_s, description=report.stage)
    session.finish()
