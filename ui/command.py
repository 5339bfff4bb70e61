"""The `flashvector` command: one Typer application, one place where errors become exit codes."""

import sys
from typing import NoReturn

import typer
from rich.console import Console

from stack.errors import FlashVectorError, InputError
from ui.chat_command import chat
from ui.demo_command import demo
from ui.diagnose_command import diagnose
from ui.doctor_command import doctor
from ui.run_command import run
from ui.simulate_command import simulate

FAILED = 1
BAD_INPUT = 2

app = typer.Typer(
    name="flashvector",
    help="Diagnose an LLM serving stack, change one setting safely, prove it on live metrics, undo what did not help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, diagnose, run, chat, doctor):
    app.command()(command)
app.add_typer(simulate, name="simulate")


def main() -> NoReturn:
    """Run the command line: exit code 0 done, 1 failed, 2 bad input."""
    try:
        app()
    except InputError as error:
        _stop(str(error), BAD_INPUT)
    except FlashVectorError as error:
        _stop(str(error), FAILED)
    sys.exit(0)


def _stop(message: str, code: int) -> NoReturn:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
