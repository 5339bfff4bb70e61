"""`flashvector doctor`: what is reachable, which signals are missing, and what that costs."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console
from sqlalchemy.exc import SQLAlchemyError

from agent.settings import Settings
from harness.journal.store import open_store
from harness.policy import Policy
from stack.clock import WallClock
from stack.errors import FlashVectorError
from stack.local.reading.metric_contract import TargetContract, check
from stack.redaction import clean
from stack.simulator.engine.kernels import available
from stack.source import snapshot_from


@dataclass(frozen=True)
class Check:
    """One thing looked at: whether it works, what was found, and what it costs when it does not."""

    name: str
    ok: bool
    found: str
    costs: str = ""

    def __post_init__(self) -> None:
        """Addresses and what answered there may hold secrets."""
        for part in ("name", "found", "costs"):
            object.__setattr__(self, part, clean(getattr(self, part)))


def doctor(
    config: Annotated[Path | None, typer.Option("-c", "--config", help="flashvector.toml; defaults if absent.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Check policy, store, planner and metrics; exit code 1 when something needed does not work."""
    settings = Settings.load(config=config)
    checks = list(_checks(settings))
    if as_json:
        typer.echo(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2))
    else:
        console = Console(soft_wrap=True)
        for check in checks:
            mark = "[green]ok[/green]     " if check.ok else "[red]missing[/red]"
            console.print(f"{mark} {check.name}: ", end="")
            console.print(check.found + (f" ({check.costs})" if check.costs else ""), markup=False)
    if not all(check.ok for check in checks):
        raise typer.Exit(code=1)


def _checks(settings: Settings) -> Iterator[Check]:
    yield _policy(settings)
    yield _store(settings)
    yield _engine()
    yield _model(settings)
    for url in settings.metrics_urls:
        yield from _metrics(url)
    if settings.stack is not None:
        for part in check(settings.stack, WallClock()):
            yield from _part(part)


def _policy(settings: Settings) -> Check:
    try:
        policy = Policy.load(settings.policy_path)
    except FlashVectorError as error:
        return Check("policy", False, str(error), "nothing may be changed")
    return Check("policy", True, f"enabled settings: {', '.join(sorted(policy.enabled))}")


def _store(settings: Settings) -> Check:
    try:
        with closing(open_store(settings.store)) as store:
            where = store.name
    except (FlashVectorError, SQLAlchemyError) as error:
        return Check("store", False, str(error), "nothing may be changed")
    return Check("store", True, where)


def _engine() -> Check:
    if available():
        return Check("simulator", True, "compiled with numba")
    return Check("simulator", True, "pure Python, numba is absent", "forecasts are about a hundred times slower")


def _model(settings: Settings) -> Check:
    if settings.llm_base_url is None:
        return Check("planner", True, "search, no LLM configured")
    try:
        answer = httpx.get(f"{settings.llm_base_url.rstrip('/')}/models", timeout=5.0)
    except httpx.HTTPError as error:
        return Check("planner", False, f"{settings.llm_base_url}: {error}", "the search planner answers instead")
    if answer.status_code != httpx.codes.OK or not _lists_models(answer):
        found = f"{settings.llm_base_url} answered {answer.status_code}, but no list of models"
        return Check("planner", False, found, "the search planner answers instead")
    return Check("planner", True, f"llm at {settings.llm_base_url}")


def _lists_models(answer: httpx.Response) -> bool:
    try:
        found = answer.json()
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("data"), list)


def _metrics(url: str) -> Iterator[Check]:
    try:
        snapshot = snapshot_from([url], interval_s=1.0)
    except FlashVectorError as error:
        yield Check(url, False, str(error), "nothing can be diagnosed")
        return
    yield Check(url, True, f"replicas: {', '.join(sorted(snapshot.replicas)) or 'none'}")
    for item in snapshot.missing:
        yield Check(f"{url} {item.signal}", True, f"absent on {item.target}: {item.reason}", item.costs)


def _part(part: TargetContract) -> Iterator[Check]:
    if part.found:
        yield Check(part.target, True, part.found)
    for problem in part.problems:
        yield Check(part.target, False, problem)
    for item in part.missing:
        yield Check(f"{part.target} {item.signal}", True, f"absent: {item.reason}", item.costs)
