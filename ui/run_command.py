"""`flashvector run`: the loop on a stack for a number of minutes, without a screen."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agent.session import Session
from agent.settings import Settings
from agent.wiring import live_session, recorded_session, simulated_session
from harness.envelope.file import read_envelope
from harness.journal.record import ENDED
from harness.mode import Mode
from stack.errors import InputError, UnreachableError
from ui.allowance import Allowance
from ui.envelope_view import envelope_json
from ui.episode import episode_json, episode_text
from ui.interruption import INTERRUPTED, Interruption, interruption
from ui.json_file import check_writable, write_json
from ui.question import WHO
from ui.report import Json, plain
from ui.sightings import Sightings, tell_frozen


def run(
    stack: Annotated[
        str, typer.Option(help="sim, a file that describes a stack, or an incident folder to replay.")
    ] = "sim",
    traffic: Annotated[str, typer.Option(help="Azure CSV or Mooncake JSONL file, or steady, ramp, spike.")] = "steady",
    load: Annotated[float | None, typer.Option(help="Mean load as a share of the fleet's capacity.")] = None,
    rate_scale: Annotated[float | None, typer.Option(help="Or: multiply the traffic's own request rate.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="NAME@SECONDS; may be given several times.")] = None,
    model: Annotated[str, typer.Option(help="Model of the simulated fleet; see simulate models.")] = "llama-3.1-8b",
    gpu: Annotated[str, typer.Option(help="GPU of the simulated fleet: h100 or h200.")] = "h100",
    tp: Annotated[int, typer.Option(min=1, max=8, help="GPUs per replica (tensor parallel).")] = 1,
    precision: Annotated[str | None, typer.Option(help="bf16, fp8 ...; default: as the model is published.")] = None,
    kv_blocks: Annotated[int | None, typer.Option(help="KV blocks per replica; default: what fits the GPU.")] = None,
    replicas: Annotated[int, typer.Option(min=1, max=128, help="Replicas of the simulated fleet.")] = 4,
    minutes: Annotated[float, typer.Option(min=1, max=1440, help="Minutes of stack time.")] = 30.0,
    mode: Annotated[
        Mode | None, typer.Option(help="shadow decides but never acts; approve asks; auto acts. Default: auto in sim.")
    ] = None,
    planner: Annotated[str | None, typer.Option(help="search (no LLM) or llm.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    slo_ttft: Annotated[float | None, typer.Option(help="Limit on time to first token, seconds.")] = None,
    slo_itl: Annotated[float | None, typer.Option(help="Limit on mean time between tokens, seconds.")] = None,
    envelope: Annotated[
        Path | None, typer.Option(help="Leave to move settings within the bounds in this TOML file, given by you.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="Journal database; in memory if not given.")] = None,
    config: Annotated[
        Path | None, typer.Option("-c", "--config", help="Of the stack an incident folder is from: its shadow record.")
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write the result to this file.")] = None,
) -> None:
    """Run observe, diagnose, plan, gate, execute, verify and remember, and report every episode."""
    if json_out is not None:
        check_writable(json_out)
    given = {"slo_ttft_s": slo_ttft, "slo_itl_s": slo_itl, "store_path": store, "planner": planner, "mode": mode}
    simulated = {
        "traffic": traffic,
        "load": load,
        "rate_scale": rate_scale,
        "faults": tuple(fault or ()),
        "model": model,
        "gpu": gpu,
        "tensor_parallel": tp,
        "precision": precision,
        "kv_blocks": kv_blocks,
        "replicas": replicas,
        "minutes": minutes,
        "seed": seed,
    }
    console = Console(stderr=True, soft_wrap=True)
    seen = Sightings()
    allowance = None if envelope is None else Allowance(read_envelope(envelope, requested_by=WHO))
    with _built(stack, config, given, simulated, console) as session, interruption() as interrupted:
        tell_frozen(session, console)
        _cycle_until_end(session, min(60.0 * minutes, session.lasts_s), console, seen, interrupted, allowance)
        if interrupted.asked:
            session.leave("interrupted before there was a verdict")
        session.finish()
        _report(session, seen, console)
        if allowance is not None:
            console.print(allowance.told(session), markup=False, highlight=False)
        if json_out is not None:
            write_json(json_out, _result(session, seen, seed))
    if interrupted.asked:
        console.print("Interrupted; what became of each change stands above.")
        raise typer.Exit(INTERRUPTED)
    if seen.nothing:
        raise UnreachableError(f"nothing could be read in any cycle: {seen.blind_reason}")
    if allowance is not None and allowance.given is None:
        raise InputError(f"--envelope {envelope}: expected one that the gate allows; why it does not stands above")


@contextmanager
def _built(
    stack: str, config: Path | None, given: Mapping[str, object], simulated: Mapping[str, Any], console: Console
) -> Iterator[Session]:
    """The session on the stack that was named."""
    with ExitStack() as ends:
        with console.status("Building the stack"):
            if stack == "sim":
                settings = Settings.load(None, **{**given, "mode": given["mode"] or Mode.AUTO})
                session = simulated_session(settings, **simulated)
            elif Path(stack).is_dir():
                session = recorded_session(Settings.load(config, **given), Path(stack))
            elif Path(stack).is_file():
                session = ends.enter_context(live_session(Settings.load(Path(stack), **given)))
            else:
                raise InputError(f"--stack: expected sim, a file with a [stack] table or a folder, found {stack!r}")
        yield session


def _cycle_until_end(
    session: Session,
    seconds: float,
    console: Console,
    seen: Sightings,
    interrupted: Interruption,
    allowance: Allowance | None,
) -> None:
    share = TextColumn("{task.percentage:.0f} %")
    columns = (TextColumn("{task.description}"), BarColumn(), share, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("observing", total=seconds)
        while session.elapsed_s < seconds and not interrupted.asked:
            report = session.cycle()
            if allowance is not None and (new := allowance.give(session)):
                console.print(f"{session.elapsed_s / 60:5.1f} min  {new}", markup=False, highlight=False)
            seen.add(report, session.elapsed_s)
            progress.update(task, completed=session.elapsed_s, description=report.stage)


def _result(session: Session, seen: Sightings, seed: int) -> Json:
    records = session.records_since_start()
    return {
        "episodes": [episode_json(record, session.started_s) for record in records if record.state in ENDED],
        "proposals": [episode_json(record, session.started_s) for record in records if record.state not in ENDED],
        "envelopes": [envelope_json(record, session.started_s) for record in session.envelopes_since_start()],
        "seen": seen.json(),
        "metrics": plain(session.score()),
        "seed": seed,
    }


def _report(session: Session, seen: Sightings, console: Console) -> None:
    for line in seen.lines():
        console.print(line, markup=False, highlight=False)
    records = session.records_since_start()
    for record in records:
        console.print(episode_text(record, session.started_s))
    moved = any(envelope.moved for envelope in session.envelopes_since_start())
    if not moved and not any(record.state in ENDED for record in records):
        console.print("No change was made.")
