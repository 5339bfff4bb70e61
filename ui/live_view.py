"""The demo's screen: replicas in columns, the diagnosis, and what was done."""

from collections import deque
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from agent.session import CycleReport
from harness.journal.record import Record
from stack.snapshot import FLEET, Signal, Snapshot
from ui.episode import episode_text

LINES = 8
ROWS: tuple[tuple[str, Signal, str], ...] = (
    ("weight", Signal.ROUTING_WEIGHT, "{:.0f}"),
    ("running", Signal.RUNNING, "{:.0f}"),
    ("waiting", Signal.WAITING, "{:.0f}"),
    ("KV used", Signal.KV_USAGE_RATIO, "{:.0%}"),
    ("preemptions", Signal.PREEMPTIONS, "{:.0f}"),
    ("TTFT P99", Signal.TTFT_P99_S, "{:.2f} s"),
    ("token time", Signal.ITL_MEAN_S, "{:.4f} s"),
    ("E2E P99", Signal.E2E_P99_S, "{:.1f} s"),
)


class LiveView:
    """What the screen shows; `add` a cycle, `render` it."""

    def __init__(self, start_s: float) -> None:
        self._start_s = start_s
        self._log: deque[str] = deque(maxlen=LINES)
        self._report: CycleReport | None = None
        self._elapsed_s = 0.0
        self._last = ""

    def add(self, report: CycleReport, elapsed_s: float) -> None:
        """Take in one cycle."""
        self._report, self._elapsed_s = report, elapsed_s
        line = report.summary
        if line != self._last:
            self._log.append(f"{elapsed_s / 60:5.1f} min  {escape(line)}")
        self._last = line

    def render(self) -> RenderableType:
        """The whole screen."""
        report = self._report
        if report is None:
            return Panel("starting")
        problems = report.diagnosis.problems
        verdict = "[green]healthy[/green]" if not problems else _finding(report)
        return Group(
            Panel(_lanes(report.snapshot), title=f"simulated stack, minute {self._elapsed_s / 60:.1f}: {report.stage}"),
            Panel(verdict, title="diagnosis"),
            Panel("\n".join(self._log), title="the loop", height=LINES + 2),
        )

    def ending(self, records: Sequence[Record]) -> str:
        """What the story came to."""
        if not records:
            return "The story is over; no change was made."
        return "\n".join(["The story is over. Changes:", *(episode_text(record, self._start_s) for record in records)])


def _finding(report: CycleReport) -> str:
    return "\n".join(
        f"[yellow]{finding.layer}[/yellow] {escape(finding.claim)} {escape(finding.advice)}".strip()
        for finding in report.diagnosis.problems[:3]
    )


def _lanes(snapshot: Snapshot) -> Table:
    names = sorted(snapshot.replicas)[:8]
    table = Table(expand=True, box=None)
    table.add_column("")
    for name in (*names, FLEET):
        table.add_column(name, justify="right")
    for label, signal, form in ROWS:
        cells = []
        for name in (*names, FLEET):
            value = snapshot.value(signal, name)
            cells.append("-" if value is None else form.format(value))
        table.add_row(label, *cells)
    return table
