"""vLLM's limit on unfinished requests (waiting and running), held by the API server: beyond it, 503."""

from typing import Any

from flashvector_vllm.change import BadFieldsError, described, whole

NAME = "queue_limit_requests"
LARGEST = 1_000_000


class UnavailableError(Exception):
    """This server can't have a limit that changes; the text says why."""


def read(client: Any) -> int | None:
    """The limit in force; None for no limit.

    Args:
        client: vLLM's AsyncLLM.

    Raises:
        UnavailableError: vLLM is too old, or there are several API servers.
    """
    limit: int | None = _settings(client).max_num_queued_reqs
    return limit


def write(client: Any, document: Any) -> int | None:
    """Set the limit.

    Args:
        client: vLLM's AsyncLLM.
        document: {"queue_limit_requests": number or null}.

    Returns:
        the limit read back.

    Raises:
        BadFieldsError: it is something else.
        UnavailableError: as in `read`.
    """
    settings = _settings(client)
    if not isinstance(document, dict) or set(document) != {NAME}:
        raise BadFieldsError({"body": f'expected {{"{NAME}": number or null}}, found {described(document)}'})
    value = document[NAME]
    if value is not None and not (whole(value) and 1 <= value <= LARGEST):
        raise BadFieldsError({NAME: f"expected a whole number from 1 to {LARGEST} or null, found {described(value)}"})
    settings.max_num_queued_reqs = value
    return read(client)


def _settings(client: Any) -> Any:
    settings = client.vllm_config.scheduler_config
    if not hasattr(settings, "max_num_queued_reqs"):
        raise UnavailableError("needs vLLM 0.30 or newer")
    servers = getattr(client.vllm_config.parallel_config, "_api_process_count", 1)
    if servers > 1:
        raise UnavailableError(
            f"expected one API server (--api-server-count 1), found {servers}: each has its own limit"
        )
    return settings
