"""`flashvector diagnose`: one shot over metrics, logs or an incident folder."""

import json
from typing import Annotated

import typer
from rich.console import Console

from harness.objective import Slo
from skills.candidates import candidates
from skills.diagnose import diagnose as diagnose_snapshot
from skills.skill import SkillContext
from stack.catalogue import SETTINGS
from stack.source import snapshot_from
from ui.report import action_json, diagnosis_json, diagnosis_text


def diagnose(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="A /metrics URL (scraped twice), Prometheus text files in time order, engine log files, "
            "or an incident folder.",
        ),
    ],
    interval: Annotated[
        float | None,
        typer.Option(
            max=86400, help="Seconds between two scrapes: of a URL (5 if not given), or that lie between the files."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
    slo_ttft: Annotated[
        float, typer.Option(min=0.001, max=3600, help="Limit on time to first token, seconds.")
    ] = Slo.ttft_s,
    slo_itl: Annotated[
        float, typer.Option(min=0.0001, max=3600, help="Limit on mean time between tokens, seconds.")
    ] = Slo.itl_s,
) -> None:
    """Say which layer is the bottleneck and why, from metrics alone. Nothing is changed."""
    snapshot = snapshot_from(sources, interval_s=interval)
    context = SkillContext(
        snapshot=snapshot,
        slo=Slo(ttft_s=slo_ttft, itl_s=slo_itl),
        enabled=frozenset(setting.name for setting in SETTINGS),
    )
    diagnosis = diagnose_snapshot(snapshot, context)
    first = diagnosis.problems[0] if diagnosis.problems else None
    actions = candidates(first, context) if first is not None and first.tunable else ()
    if as_json:
        report = {**diagnosis_json(diagnosis, snapshot), "actions": [action_json(action) for action in actions]}
        typer.echo(json.dumps(report, indent=2))
    else:
        Console(soft_wrap=True).print(diagnosis_text(diagnosis, snapshot, actions))
