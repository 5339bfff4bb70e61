"""The `flashvector` command: its subcommands, and the one place where errors become exit codes."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import typer
from rich.console import Console

from stack.errors import FlashVectorError, InputError
from stack.redaction import redact_logs
from ui.interruption import INTERRUPTED

FAILED = 1
BAD_INPUT = 2

COMMANDS = {
    "demo": "ui.demo_command",
    "diagnose": "ui.diagnose_command",
    "run": "ui.run_command",
    "serve": "ui.serve_command",
    "chat": "ui.chat_command",
    "doctor": "ui.doctor_command",
    "stack": "ui.stack_command",
    "record": "ui.record_command",
    "shadow": "ui.shadow_command",
    "journal": "ui.journal_command",
    "stop": "ui.stop_command",
    "unfreeze": "ui.stop_command",
    "simulate": "ui.simulate_command",
}
"""Subcommands in the order of the help page; each is a function or application of its name in that module."""


def application(arguments: Sequence[str]) -> typer.Typer:
    """The command line. Only the subcommand that `arguments` begin with is imported, if they begin with one.

    A diagnosis need not wait for the loop's libraries to load.
    """
    redact_logs()
    app = typer.Typer(name="flashvector", add_completion=False, pretty_exceptions_enable=False)
    app.callback(no_args_is_help=True)(flashvector)
    for name in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        found = getattr(import_module(COMMANDS[name]), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def flashvector() -> None:
    """Diagnose an LLM serving stack, change one setting safely, prove it on live metrics, undo what did not help."""


def main() -> NoReturn:
    """Run the command line: exit code 0 done, 1 failed, 2 bad input, 130 interrupted."""
    try:
        application(sys.argv[1:])()
    except InputError as error:
        _stop(str(error), BAD_INPUT)
    except FlashVectorError as error:
        _stop(str(error), FAILED)
    except KeyboardInterrupt:
        _stop("interrupted", INTERRUPTED)
    sys.exit(0)


def _stop(message: str, code: int) -> NoReturn:
    Console(stderr=True).print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
