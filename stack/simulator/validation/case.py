"""A measured row in the simulator's terms, or the reason why it is left out."""

import re
from dataclasses import dataclass

from stack.errors import InputError
from stack.simulator.engine.layout import Tables
from stack.simulator.hardware.gpu import BLOCK_TOKENS, kv_blocks, model_named
from stack.simulator.hardware.overhead import kernel_family
from stack.simulator.hardware.step_times import tables_for
from stack.simulator.validation.figures import Figures, has_figures, measured_figures
from stack.simulator.validation.generations import generation_of
from stack.simulator.validation.naming import gpu_of_row, model_of_row, precision_of_row
from stack.simulator.validation.roofline import PEAKS, ClosedLoop, is_impossible
from stack.simulator.validation.rows import MeasuredRow

SMALLEST_DEFAULT_CAP = 256
"""vLLM's smallest default of max_num_seqs; above it nobody knows whether that many requests ran at once."""
KV_MARGIN = 0.95
"""KV blocks are known to 5 % only (`hardware.RUNTIME_BYTES`)."""

_DISOWNED = re.compile(r"do not use|client-limited", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Case:
    """A row that can be simulated.

    Attributes:
        family: of its kernels, see `overhead.kernel_family`.
        kv_blocks: of the replica.
        measured: what the row says.
    """

    row: MeasuredRow
    generation: str
    model: str
    gpu: str
    precision: str
    family: str
    kv_blocks: int
    tables: Tables
    measured: Figures

    @property
    def prompt_tokens(self) -> int:
        """Published prompt length."""
        return round(self.row.prompt_tokens or 0)

    @property
    def output_tokens(self) -> int:
        """Published output length."""
        return round(self.row.output_tokens or 0)


class WeightsDoNotFitError(InputError):
    """The weights do not fit on the number of GPUs that a row names."""


def case_of(row: MeasuredRow) -> Case:
    """The row in the simulator's terms.

    Decided from the row's inputs and its own quality note alone, never from how well it is predicted.

    Raises:
        InputError: it cannot be simulated or should not be; the text is the reason.
    """
    _check_quality(row)
    _check_inputs(row)
    model, gpu, precision = model_of_row(row), gpu_of_row(row), precision_of_row(row)
    try:
        blocks = kv_blocks(model, gpu, row.tensor_parallel, precision)
    except InputError as error:
        raise WeightsDoNotFitError(str(error)) from None
    case = Case(
        row=row,
        generation=generation_of(row.engine),
        model=model,
        gpu=gpu,
        precision=precision,
        family=kernel_family(model_named(model), precision),
        kv_blocks=blocks,
        tables=tables_for(model, gpu, row.tensor_parallel, precision),
        measured=measured_figures(row),
    )
    _check_saturation(case)
    _check_possibility(case)
    return case


def _check_quality(row: MeasuredRow) -> None:
    if row.quality.startswith("C"):
        raise InputError(f"its file rates it {row.quality}")
    if found := _DISOWNED.search(f"{row.quality} {row.note}"):
        raise InputError(f"its own note says: {found[0]}")


def _check_inputs(row: MeasuredRow) -> None:
    if row.prompt_tokens is None or row.output_tokens is None:
        raise InputError("prompt or output length not published")
    if row.output_tokens < 2:
        raise InputError("a single output token has no TPOT")
    if row.load.startswith("open-trace"):
        raise InputError("arrival times and lengths of its trace are not in the file")
    if row.is_open_loop and row.request_rate_per_s is None:
        raise InputError("request rate not published")
    if not row.is_open_loop and row.concurrency is None:
        raise InputError("concurrency not published")
    if not has_figures(row):
        raise InputError("no TPOT and TTFT published")


def _check_saturation(case: Case) -> None:
    row = case.row
    users = 1.0 if row.is_open_loop else row.concurrency or 1.0
    if row.max_num_seqs is None and users > SMALLEST_DEFAULT_CAP:
        raise InputError(f"saturated or not: {users:g} users, and max_num_seqs not published")
    if row.max_num_seqs is not None and users > row.max_num_seqs:
        raise InputError(f"saturated: {users:g} users at max_num_seqs {row.max_num_seqs:g}")
    tokens = users * (case.prompt_tokens + case.output_tokens)
    holds = case.kv_blocks * BLOCK_TOKENS
    if tokens > KV_MARGIN * holds:
        raise InputError(f"saturated: {users:g} users need {tokens:.0f} KV tokens, the replica holds {holds}")


def _check_possibility(case: Case) -> None:
    row = case.row
    if row.is_open_loop or case.gpu not in PEAKS:
        return
    load = ClosedLoop(
        model=case.model,
        gpu=case.gpu,
        precision=case.precision,
        tensor_parallel=row.tensor_parallel,
        users=row.concurrency or 1.0,
        prompt_tokens=case.prompt_tokens,
        output_tokens=case.output_tokens,
    )
    if is_impossible(load, case.measured):
        raise InputError("faster than the GPUs it names can be: not one replica on them")
