"""The watcher's hand: it gives back values that were held, and nothing else asks it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from stack.local.configuration import LocalStack
from stack.local.control import LocalControl
from stack.local.engine.control import EngineControl
from stack.local.gateway.control import GatewayControl
from stack.local.processes.held_values import HeldValues, Write
from stack.local.processes.launches import Launches


@contextmanager
def writer(stack: LocalStack) -> Iterator[Write]:
    """Sets values in the stack during the block, beside whoever looks after it."""
    with closing(EngineControl(stack)) as engines:
        gateway, held = GatewayControl(stack), HeldValues(stack.run_folder)
        yield LocalControl(gateway, engines, Launches(stack), held).write
