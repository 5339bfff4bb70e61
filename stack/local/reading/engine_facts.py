"""What an engine's server says of itself beside its metrics: vLLM's version, and what our plugin tells."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from stack.errors import FlashVectorError
from stack.fetch import Limits, fetched
from stack.local.configuration import LocalStack, Replica
from stack.redaction import clean

LIMITS = Limits(connect_s=1.0, silence_s=3.0, total_s=5.0, most_bytes=1 << 20)


@dataclass(frozen=True)
class Page:
    """A JSON answer.

    Attributes:
        status: HTTP status; None where nothing answered.
        document: the object in it; empty where there is none.
        problem: why it cannot be used, in a few words; empty where it can.
    """

    status: int | None
    document: Mapping[str, Any]
    problem: str = ""


class EngineFacts:
    """Asks one replica's server. Nothing here raises: every question has an answer or a reason.

    Args:
        client: keeps connections between questions.
    """

    def __init__(self, configuration: LocalStack, replica: Replica, client: httpx.Client) -> None:
        self._headers = configuration.engine_access(writes=False)
        self._url, self._client = replica.url, client

    def version(self) -> Page:
        """`GET /version`: `{"version": ...}`."""
        return self._page("/version", {})

    def limits(self) -> Page:
        """`GET /flashvector/limits`, see the plugin's README."""
        return self._page("/flashvector/limits", self._headers)

    def memory(self) -> Page:
        """`GET /flashvector/memory`: `workers`, a list of byte figures."""
        return self._page("/flashvector/memory", self._headers)

    def _page(self, path: str, headers: Mapping[str, str]) -> Page:
        try:
            answer = fetched(self._url + path, limits=LIMITS, client=self._client, headers=headers)
        except FlashVectorError as error:
            return Page(None, {}, str(error))
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            return Page(answer.status, {}, f"{path} answered {answer.status} without a JSON object")
        if answer.status != httpx.codes.OK:
            return Page(answer.status, document, f"{path} answered {answer.status}{_errors(document)}")
        return Page(answer.status, document)


def _errors(document: Mapping[str, Any]) -> str:
    errors = document.get("errors")
    return ": " + "; ".join(clean(str(text))[:160] for text in errors.values()) if isinstance(errors, dict) else ""
