"""`flashvector simulate add-model`: step times of a user's own model."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stack.simulator.hardware.model_files import FOLDER_VARIABLE
from stack.simulator.silicon.added_model import add_model
from ui.models_command import summaries


def add_model_command(
    config: Annotated[Path, typer.Argument(help="The model's config.json, as published with its weights.")],
    gpu: Annotated[str, typer.Option(help="h100 or h200.")] = "h100",
    tp: Annotated[int, typer.Option(min=1, max=8, help="GPUs per replica (tensor parallel).")] = 1,
    precision: Annotated[str | None, typer.Option(help="Default: as the config says. See simulate models.")] = None,
    name: Annotated[str | None, typer.Option(help="What to call it; default: the config's folder.")] = None,
) -> None:
    """Make step times of your own model from measured kernels; from then on --model NAME knows it."""
    path = add_model(config, name, gpu, tp, precision)
    console = Console(soft_wrap=True)
    for line in summaries(path.stem):
        console.print(line, markup=False, highlight=False)
    console.print(f"written to {path}; {FOLDER_VARIABLE} chooses another folder", markup=False, highlight=False)
