"""`flashvector shadow`: how good the decisions were that were not acted on, and what is missing until they may be."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agent.settings import Settings
from harness.journal.reading import JournalReader
from harness.journal.store import read_store
from harness.policy import Policy
from harness.shadow.bar import Standing, harms
from harness.shadow.overview import Overview, SettingRecord, overview
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Score
from stack.errors import InputError
from ui.report import Json, plain
from ui.shadow_line import score_text
from ui.store_choice import chosen_store

shadow = typer.Typer(help="Decisions that were not acted on, judged afterwards.", no_args_is_help=True)


@shadow.callback()
def _group() -> None:
    """Keeps `report` a subcommand while it is the only one."""


@shadow.command("report")
def report(
    config: Annotated[Path, typer.Option("-c", "--config", help=r"File with a \[stack] table.")],
    last: Annotated[int, typer.Option(min=0, max=10_000, help="How many of the last decisions to list.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Say per setting what its record in shadow amounts to, and what is missing until auto may be chosen for it."""
    settings = Settings.load(config=config)
    if settings.stack is None:
        raise InputError(f"{config}: expected a table [stack], whose record is to be reported")
    policy, name = settings.policy(), settings.stack.name
    with closing(read_store(chosen_store(config, None))) as store:
        record = ShadowRecord(store, stack=name, planner=settings.planner)
        found = overview(record, JournalReader(store, stack=name), policy)
    if as_json:
        typer.echo(json.dumps(_json(found, record, policy, last), indent=2))
    else:
        _print(found, record, policy, last)


def _json(found: Overview, record: ShadowRecord, policy: Policy, last: int) -> Json:
    return {
        "stack": record.stack,
        "planner": record.planner,
        "bar": policy.shadow.model_dump(),
        "settings": [{"setting": name, **_setting_json(one)} for name, one in found.settings],
        "no_action": _standing_json(found.nothing),
        "decisions": [_score_json(score, policy) for score in _newest(found, last)],
    }


def _setting_json(one: SettingRecord) -> Json:
    return {
        "enabled": one.enabled,
        "vouched": one.vouched,
        "proposed": one.proposed,
        "denied": one.denied,
        "waiting": one.waiting,
        **_standing_json(one.standing),
        "auto_offered": one.standing.passed,
        "missing": list(one.standing.missing),
        "harmed_s": one.harmed_s,
    }


def _standing_json(standing: Standing) -> Json:
    names = ("decided", "scored", "repeated", "counted", "within", "harmful")
    return {**{name: getattr(standing, name) for name in names}, "unscored": dict(standing.unscored)}


def _score_json(score: Score, policy: Policy) -> Json:
    hindsight = score.hindsight
    judged: Json = {}
    if hindsight is not None:
        judged = {
            **{name: plain(asdict(getattr(hindsight, name))) for name in ("nothing", "proposed", "best")},
            "best_change": None if hindsight.best_change is None else plain(asdict(hindsight.best_change)),
            "tried": hindsight.tried,
            "regret_ratio": plain(hindsight.regret_ratio),
            "harmful": harms(hindsight, policy),
        }
    return {
        "decided_s": score.decided_s,
        "action_id": score.action_id,
        "setting": score.setting,
        "target": score.target,
        "from": plain(score.before),
        "to": plain(score.after),
        "hindsight": judged or None,
        "unscored": None if score.unscored is None else str(score.unscored),
        "detail": score.detail,
        "operator": None if score.operator is None else plain(asdict(score.operator)),
    }


def _print(found: Overview, record: ShadowRecord, policy: Policy, last: int) -> None:
    console, bar = Console(soft_wrap=True), policy.shadow

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False)

    say(f"{record.stack}, decided by {record.planner}, each judged on the replay of the minutes that followed it.")
    say(
        f"Auto may be chosen for a setting when of its newest {bar.decisions_min} scored decisions {bar.share_min:.0%} "
        f"missed at most {bar.within_ratio:.0%} of the best, and at most {bar.harmful_max} were harmful."
    )
    say(f"The same change decided again within {bar.repeat_s / 60:.0f} minutes does not count again, unless it harms.")
    console.print(_table(found))
    for line in _remarks(found):
        say(line)
    for score in _newest(found, last):
        say(score_text(score, policy))
    if not found.scores:
        say("No decision has been judged yet.")


def _table(found: Overview) -> Table:
    table = Table(box=None)
    for name in ("setting", "scored", "within", "harmful", "waiting", "denied", "auto"):
        words = name in ("setting", "auto")
        table.add_column(name, no_wrap=not words, justify="left" if words else "right")
    for name, one in found.settings:
        table.add_row(name, *_figures(one.standing), str(one.waiting), str(one.denied), _auto(one))
    table.add_row("(change nothing)", *_figures(found.nothing), "", "", "")
    return table


def _figures(standing: Standing) -> tuple[str, ...]:
    return str(standing.scored), f"{standing.within}/{standing.counted}", str(standing.harmful)


def _auto(one: SettingRecord) -> str:
    if not one.enabled:
        return "not enabled"
    if one.standing.passed:
        return "may be chosen"
    return "vouched for" if one.vouched else "not yet"


def _remarks(found: Overview) -> Iterator[str]:
    """What is missing, and why decisions have no score."""
    for name, one in found.settings:
        if one.enabled and one.standing.missing:
            yield f"{name} lacks: {'; '.join(one.standing.missing)}"
        if one.harmed_s is not None:
            yield f"{name}: a change was undone for harm, so its record began anew"
    for name, standing in [
        *((name, one.standing) for name, one in found.settings),
        ("(change nothing)", found.nothing),
    ]:
        for reason, count in sorted(standing.unscored.items()):
            yield f"{name}: {count} without a score: {reason}"


def _newest(found: Overview, last: int) -> tuple[Score, ...]:
    return found.scores[max(0, len(found.scores) - last) :]
