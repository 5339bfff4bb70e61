"""Two ways to hang the doors into vLLM's API server: its endpoint plugins (0.26 and newer), or an ASGI middleware."""

from argparse import Namespace
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import State
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from flashvector_vllm.access import Access
from flashvector_vllm.doors import PREFIX, ROUTES, Doors


class FlashVectorEndpoint:
    """vLLM's endpoint plugin; loaded when VLLM_PLUGINS names `flashvector_http`.

    Raises:
        ValueError, OSError: a token is unusable; vLLM logs it and starts without the doors.
    """

    name = "flashvector_http"
    required_tasks = ("generate",)

    def __init__(self) -> None:
        self._doors = Doors(Access.from_environment())

    def attach_router(self, app: FastAPI) -> None:
        """Add the routes."""
        for method, path in ROUTES:
            app.add_api_route(path, self._doors.answer, methods=[method], include_in_schema=False, response_model=None)

    async def init_state(self, engine_client: Any, state: State, args: Namespace) -> None:
        """Nothing to prepare: the routes take the engine from the app's state."""


class FlashVectorMiddleware:
    """For vLLM before 0.26: `--middleware flashvector_vllm.endpoint.FlashVectorMiddleware`.

    Args:
        app: the app it wraps.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._doors = app, Doors(Access.from_environment())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is below PREFIX, pass on the rest."""
        if scope["type"] == "http" and scope["path"].startswith(f"{PREFIX}/"):
            answer = await self._doors.answer(Request(scope, receive))
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)
