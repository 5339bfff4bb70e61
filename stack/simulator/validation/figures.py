"""The figures of one run that are compared, measured or simulated."""

from dataclasses import dataclass

from stack.simulator.validation.rows import MeasuredRow


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Milliseconds; None where a measured row does not give the figure.

    Attributes:
        tpot_ms, ttft_ms: medians where the row gives medians of both, else means.
        e2e_ms: of a request, as measured; TTFT + (output tokens - 1) x TPOT where only those are.
        ttft_p50_ms, ttft_p99_ms: over requests.
    """

    tpot_ms: float
    ttft_ms: float
    e2e_ms: float
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None


def has_medians(row: MeasuredRow) -> bool:
    """Whether the row gives TPOT and TTFT as medians, which a few outliers do not move."""
    return row.tpot_p50_ms is not None and row.ttft_p50_ms is not None


def has_figures(row: MeasuredRow) -> bool:
    """Whether there is anything to compare: a TPOT and a TTFT."""
    return has_medians(row) or (row.tpot_mean_ms is not None and row.ttft_mean_ms is not None)


def measured_figures(row: MeasuredRow) -> Figures:
    """What the row says; only for rows that have figures and an output length."""
    medians = has_medians(row)
    tpot_ms, ttft_ms = (row.tpot_p50_ms, row.ttft_p50_ms) if medians else (row.tpot_mean_ms, row.ttft_mean_ms)
    assert tpot_ms is not None and ttft_ms is not None and row.output_tokens is not None
    e2e_ms = row.e2e_p50_ms if medians else row.e2e_mean_ms
    return Figures(
        tpot_ms=tpot_ms,
        ttft_ms=ttft_ms,
        e2e_ms=e2e_ms or composed_e2e_ms(ttft_ms, tpot_ms, row.output_tokens),
        ttft_p50_ms=row.ttft_p50_ms,
        ttft_p99_ms=row.ttft_p99_ms,
    )


def has_measured_e2e(row: MeasuredRow) -> bool:
    """Whether E2E is a measured figure of its own."""
    return (row.e2e_p50_ms if has_medians(row) else row.e2e_mean_ms) is not None


def composed_e2e_ms(ttft_ms: float, tpot_ms: float, output_tokens: float) -> float:
    """E2E of a request from its two parts."""
    return ttft_ms + (output_tokens - 1) * tpot_ms
