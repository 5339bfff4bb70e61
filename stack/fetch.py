"""One bounded HTTP GET: what answers slowly, endlessly or not at all costs no more than its limits."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from stack.errors import InputError, UnreachableError
from stack.redaction import keep_url_secret


@dataclass(frozen=True)
class Limits:
    """What one answer may cost.

    Attributes:
        connect_s: longest wait for a connection.
        silence_s: longest gap between two pieces of the answer.
        total_s: longest time for all of it.
        most_bytes: its largest size.
    """

    connect_s: float = 3.0
    silence_s: float = 10.0
    total_s: float = 30.0
    most_bytes: int = 64 * 1024 * 1024


LIMITS = Limits()


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: bytes


def fetched(
    address: str,
    *,
    limits: Limits = LIMITS,
    client: httpx.Client | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """What `address` answers to a GET. Redirects are not followed.

    Args:
        client: keeps connections open between calls; None opens one for this call.

    Raises:
        UnreachableError: nothing answered, or not all of it in time.
        InputError: the address is malformed, or the answer is larger than allowed.
    """
    if "@" in address:
        keep_url_secret(address)
    try:
        if client is not None:
            return _read(client, address, limits, headers)
        with httpx.Client() as own:
            return _read(own, address, limits, headers)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InputError(f"{address}: not an address: {error}") from error
    except httpx.HTTPError as error:
        raise UnreachableError(f"{address}: no answer: {error or type(error).__name__}") from error


def _read(client: httpx.Client, address: str, limits: Limits, headers: Mapping[str, str] | None) -> Answer:
    body, until_s = bytearray(), time.monotonic() + limits.total_s
    timeout = httpx.Timeout(limits.silence_s, connect=limits.connect_s)
    with client.stream("GET", address, timeout=timeout, headers=headers, follow_redirects=False) as answer:
        for part in answer.iter_bytes():
            body += part
            if len(body) > limits.most_bytes:
                raise InputError(f"{address}: more than {limits.most_bytes} bytes, the most that is read")
            if time.monotonic() > until_s:
                raise UnreachableError(f"{address}: not all of the answer within {limits.total_s:g} s")
        return Answer(answer.status_code, bytes(body))
