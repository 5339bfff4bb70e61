"""The demo's screen: replicas in columns, the diagnosis, and what was done; it fits 80 columns and 24 rows."""

from collections import deque
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agent.session import CycleReport
from harness.journal.record import Record
from stack.snapshot import FLEET, Signal, Snapshot
from ui.episode import episode_text

LINES = 5
FINDINGS = 2
COLUMNS = 5
ROWS: tuple[tuple[str, Signal, float, str], ...] = (
    ("weight", Signal.ROUTING_WEIGHT, 1, "{:.0f}"),
    ("running", Signal.RUNNING, 1, "{:.0f}"),
    ("waiting", Signal.WAITING, 1, "{:.0f}"),
    ("KV used", Signal.KV_USAGE_RATIO, 1, "{:.0%}"),
    ("TTFT P99", Signal.TTFT_P99_S, 1, "{:.2f} s"),
    ("token time", Signal.ITL_MEAN_S, 1000, "{:.0f} ms"),
    ("E2E P99", Signal.E2E_P99_S, 1, "{:.1f} s"),
)
"""Label, signal, factor and format of each line."""


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
        if report.summary != self._last:
            self._log.append(f"{elapsed_s / 60:5.1f} min  {report.summary}")
        self._last = report.summary

    def render(self) -> RenderableType:
        """The whole screen."""
        report = self._report
        if report is None:
            return Panel("starting")
        title = f"simulated stack, minute {self._elapsed_s / 60:.1f}: {report.stage}"
        problems = report.diagnosis.problems[:FINDINGS]
        found = [Text(f"{f.layer}: {f.claim} {f.advice}".strip(), style="yellow") for f in problems]
        return Group(
            Panel(_lanes(report.snapshot), title=title),
            Panel(_lines(found or [Text("healthy", style="green")], FINDINGS), title="diagnosis"),
            Panel(_lines([Text(line) for line in self._log], LINES), title="the loop"),
        )

    def ending(self, records: Sequence[Record]) -> str:
        """What the story came to."""
        if not records:
            return "The story is over; no change was made."
        return "\n".join(["The story is over. Changes:", *(episode_text(record, self._start_s) for record in records)])


def _lines(texts: Sequence[Text], count: int) -> Text:
    """Each text on one line, cut where it does not fit, and always `count` lines, so that nothing jumps."""
    lines = [*texts, *[Text("")] * (count - len(texts))]
    joined = Text("\n").join(lines)
    joined.no_wrap, joined.overflow = True, "ellipsis"
    return joined


def _lanes(snapshot: Snapshot) -> Table:
    names = sorted(snapshot.replicas)[: COLUMNS - 1]
    table = Table(expand=True, box=None, padding=(0, 1))
    table.add_column("")
    for name in (*names, FLEET):
        table.add_column(escape(name), justify="right", no_wrap=True)
    for label, signal, factor, form in ROWS:
        values = (snapshot.value(signal, name) for name in (*names, FLEET))
        table.add_row(label, *("-" if value is None else form.format(factor * value) for value in values))
    return table
