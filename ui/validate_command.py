"""`flashvector simulate validate`: measured benchmark rows against simulated ones."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from stack.errors import InputError
from stack.simulator.validation.document import document
from stack.simulator.validation.validate import validate
from ui.json_file import check_writable, write_json

FIGURES = {"tpot": "TPOT", "e2e": "E2E", "ttft": "TTFT", "ttft_p50": "TTFT P50", "ttft_p99": "TTFT P99"}


def validate_rows(
    csv: Annotated[
        Path, typer.Argument(metavar="CSV", help="Measured benchmark rows; docs/accuracy.md has the columns.")
    ],
    fit: Annotated[
        Path | None, typer.Option(help="Fit on this file and test on CSV; without it one half of CSV is fitted on.")
    ] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write the result to this file.")] = None,
) -> None:
    """Simulate each measured row, compare, and say which were left out and why."""
    if json_out is not None:
        if json_out.resolve() in {path.resolve() for path in (csv, fit) if path is not None}:
            raise InputError(f"--json {json_out}: is one of the measured files, which would be lost")
        check_writable(json_out)
    waiting = Console(stderr=True)
    with waiting.status("Starting") as status:
        result = document(validate(csv, fit, lambda text: status.update(text.capitalize())))
    console = Console(soft_wrap=True)
    console.print(errors_table(result))
    for line in remarks(result):
        console.print(line, markup=False, highlight=False)
    if json_out is not None:
        write_json(json_out, result)


def errors_table(result: Mapping[str, Any]) -> Table:
    """Median and 90th percentile of the errors by engine generation, and over all."""
    table = Table(
        title="Simulated against measured: median / 90th percentile of |error|, %", title_justify="left", box=None
    )
    table.add_column("engine", no_wrap=True)
    table.add_column("rows", justify="right")
    for name in FIGURES.values():
        table.add_column(name, justify="right", no_wrap=True)
    rows = {**result["by_generation"], "all": {**result, "n": result["tested"]}}
    for name, found in rows.items():
        borrowed = found.get("constants_of", name) != name
        label = f"{name} (constants of {found['constants_of']})" if borrowed else name
        table.add_row(label, str(found["n"]), *(_errors(found[figure]) for figure in FIGURES))
    return table


def remarks(result: Mapping[str, Any]) -> Iterator[str]:
    """Decisions, order, and what was left out."""
    yield "TTFT P50 and P99: open-loop rows, each with constants fitted without any row of its model."
    if picks := result["slo_picks"]:
        yield (
            f"Of {picks['n']} picks under a TPOT limit {picks['broken']:.0%} break it and {picks['same']:.0%} are the "
            f"best one; those that keep it give away {picks['regret']:.1%} of the throughput on average."
        )
    if result["kendall_tau"] is not None:
        yield f"Order of TPOT within a model: Kendall's tau {result['kendall_tau']:.3f}."
    if result["contradicted"]:
        yield (
            f"{len(result['contradicted'])} usable rows are slower than the same load with more users, so one of each "
            f"pair is wrong; TPOT without them: {_errors(result['tpot_uncontradicted'])} %."
        )
    if result["in_both"]:
        yield f"{len(result['in_both'])} tested rows are in the fit file too: their errors are not held out."
    for where, left_out in (("", result["left_out"]), ("of the fit file ", result["fit_left_out"])):
        if left_out:
            yield f"Left out {where}({len(left_out)} rows):"
            counted = Counter((one["dataset"], _kind(one["reason"])) for one in left_out)
            yield from (f"  {n:4d} {dataset}: {reason}" for (dataset, reason), n in counted.most_common())


def _kind(reason: str) -> str:
    """Reasons that differ in their numbers only are counted together; the JSON has each."""
    return reason.split(":")[0] if reason.startswith("saturated") else reason


def _errors(summary: Mapping[str, float] | None) -> str:
    return "" if summary is None else f"{summary['mdape'] * 100:.1f}/{summary['p90'] * 100:.1f}"
