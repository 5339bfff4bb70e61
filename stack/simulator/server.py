"""The simulated stack's metrics over HTTP, as a real vLLM fleet behind HAProxy would show them."""

import threading
import time
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from stack.exposition import render
from stack.simulator.stack import SimulatedStack

LOOPBACK = "127.0.0.1"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class PacedStack:
    """Lets a stack's virtual time follow wall time, `speed` virtual seconds per second, whenever it is asked."""

    def __init__(self, stack: SimulatedStack, *, speed: float, wall_s: Callable[[], float] = time.monotonic) -> None:
        self._stack, self._speed, self._wall_s = stack, speed, wall_s
        self._last_s = wall_s()
        self._lock = threading.Lock()

    def metrics(self) -> str:
        """Prometheus text of the stack as it is by now."""
        with self._lock:
            now_s = self._wall_s()
            self._stack.advance((now_s - self._last_s) * self._speed)
            self._last_s = now_s
            return render(self._stack.simulation.readings())


def metrics_app(stack: SimulatedStack, *, speed: float = 1.0) -> Starlette:
    """A web application with one page, `/metrics`."""
    paced = PacedStack(stack, speed=speed)

    def metrics(_request: Request) -> PlainTextResponse:
        return PlainTextResponse(paced.metrics(), media_type=TEXT_FORMAT)

    return Starlette(routes=[Route("/metrics", metrics)])


def serve(stack: SimulatedStack, *, port: int, speed: float = 1.0) -> None:
    """Answer on the loopback interface until interrupted."""
    uvicorn.run(metrics_app(stack, speed=speed), host=LOOPBACK, port=port, log_level="warning")
