"""`flashvector simulate models`: which models can be simulated on which GPUs, and where their times come from."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from stack.errors import InputError
from stack.simulator.hardware.gpu import kv_blocks, model_named
from stack.simulator.hardware.model_files import is_shipped, model_file, model_names, table_facts


def models_command(
    model: Annotated[str | None, typer.Argument(help="Only this one, with each of its tables.")] = None,
) -> None:
    """List the models that --model knows; with a name, every table of it and which share of its time was measured."""
    console = Console(soft_wrap=True)
    lines = summaries(model) if model else (_line(name) for name in model_names())
    for line in lines:
        console.print(line, markup=False, highlight=False)


def summaries(name: str) -> Iterator[str]:
    """The model in a line, then a line per table."""
    file, _ = model_file(name), model_named(name)
    yield _line(name)
    for key, table in file["tables"].items():
        gpu, tensor_parallel, precision = table_facts(key)
        blocks = kv_blocks(name, gpu, tensor_parallel, precision)
        how = ", ".join(f"{source} {share:.0%}" for source, share in table["sources"].items())
        where = file["provenance"]["measured_with"].get(gpu, "?")
        marks = [*([table["experts"]] if "experts" in table else []), *_doubts(table)]
        notes = f"; {', '.join(marks)}" if marks else ""
        yield f"  {gpu} --tp {tensor_parallel} --precision {precision}: {blocks:,} KV blocks; {where}: {how}{notes}"


def _line(name: str) -> str:
    try:
        file, model = model_file(name), model_named(name)
    except InputError as error:
        return f"{name}: unusable: {error}"
    facts = [table_facts(key) for key in file["tables"]]
    gpus = ", ".join(dict.fromkeys(gpu for gpu, _, _ in facts))
    sizes = ", ".join(str(size) for size in sorted({size for _, size, _ in facts}))
    precisions = ", ".join(dict.fromkeys(precision for _, _, precision in facts))
    kept = "" if is_shipped(name) else "; yours"
    source = file["provenance"].get("library", "unknown")
    return f"{name}: {model.parameters / 1e9:.1f}B; {gpus}; TP {sizes}; {precisions}; {source}{kept}"


def _doubts(table: Mapping[str, Any]) -> list[str]:
    fused = ["attention timed with its projections"] if table.get("fused_attention") else []
    return fused + [f"not measured in part: {gap}" for gap in table.get("gaps", [])]
