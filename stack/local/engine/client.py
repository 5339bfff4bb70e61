"""The routes of the flashvector plugin in one vLLM."""

from collections.abc import Mapping
from typing import Any, Self

import httpx

from stack.errors import StackError, UnknownSettingError, UnreachableError
from stack.local.configuration import LocalStack, Replica

TIMEOUT = httpx.Timeout(35.0, connect=2.0)
"""The plugin itself waits up to 30 s for the engine to come to the end of a step."""
PREFIX = "/flashvector"
Answer = dict[str, Any]


class NotTakenError(StackError):
    """The engine understood and did not do it: what it was asked is out of its bounds, or it cannot."""


class EngineClient:
    """Asks one engine. Without `writes` it can only read.

    Args:
        replica: the engine's name and address.
        headers: of every request, for an engine that asks for a token.
        writes: whether POST is possible.
    """

    def __init__(self, replica: Replica, headers: Mapping[str, str], *, writes: bool) -> None:
        self.replica, self._writes = replica, writes
        self._http = httpx.Client(base_url=replica.url, timeout=TIMEOUT, headers=headers, trust_env=False)

    @classmethod
    def of(cls, configuration: LocalStack, name: str, *, writes: bool = False) -> Self:
        """The client of the replica called `name`."""
        return cls(configuration.replica(name), configuration.engine_access(writes=writes), writes=writes)

    def limits(self) -> Answer:
        """Limits, bounds and state of the scheduler; see the plugin's README.

        Raises:
            UnreachableError: no answer, or none that can be read.
            UnknownSettingError: this vLLM runs without the plugin.
        """
        return self._get("limits")

    def change_limits(self, values: Mapping[str, int | bool]) -> Answer:
        """Set some limits; returns the state after it, with what was `adjusted`.

        Raises:
            UnreachableError, UnknownSettingError: as for `limits`.
            NotTakenError: the engine refused.
        """
        if not self._writes:
            raise NotTakenError(f"{self.replica.name}: this client only reads")
        return self._answered(self._send("POST", "limits", json=dict(values)), "limits")

    def memory(self) -> Answer:
        """Memory of every worker's device; see `limits` for errors."""
        return self._get("memory")

    def steps(self, since: int, last: int = 1000) -> Answer:
        """The state with the first steps after `since`; see `limits` for errors."""
        return self._answered(self._send("GET", "steps", params={"since": since, "last": last}), "steps")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _get(self, route: str) -> Answer:
        return self._answered(self._send("GET", route), route)

    def _send(self, method: str, route: str, **arguments: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own
        try:
            return self._http.request(method, f"{PREFIX}/{route}", **arguments)
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            raise UnreachableError(
                f"{self.replica.name}: no answer from its engine at {self._place(route)}: {said}"
            ) from error

    def _answered(self, answer: httpx.Response, route: str) -> Answer:
        name, status = self.replica.name, answer.status_code
        if status == httpx.codes.NOT_FOUND:
            raise UnknownSettingError(
                f"{name}: its vLLM runs without the flashvector plugin, so limits of its engine can neither be read "
                "nor set; start it with VLLM_PLUGINS=flashvector,flashvector_http and the plugin's --scheduler-cls"
            )
        if status == httpx.codes.FORBIDDEN:
            token = "engine_token" if self._writes else "engine_token, or engine_read_token,"
            raise UnreachableError(f"{name}: {self._place(route)} is not open to us; is {token} right?")
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise UnreachableError(f"{name}: {self._place(route)} answered {status} and no JSON object")
        if status in (httpx.codes.BAD_REQUEST, httpx.codes.NOT_IMPLEMENTED):
            raise NotTakenError(f"{name}: {_errors(found)}")
        if status != httpx.codes.OK:
            raise UnreachableError(f"{name}: {self._place(route)} answered {status}: {_errors(found)}")
        return found

    def _place(self, route: str) -> str:
        return f"{self.replica.url}{PREFIX}/{route}"


def _errors(found: Answer) -> str:
    errors = found.get("errors")
    return (
        "; ".join(f"{key}: {text}" for key, text in errors.items()) if isinstance(errors, dict) else "no reason given"
    )
