"""One scrape of a /metrics address."""

from urllib.parse import urlsplit

import httpx

from stack.clock import Clock
from stack.errors import InputError, UnreachableError
from stack.exposition import readings_in
from stack.metric_line import text_of
from stack.reading import Reading

TIMEOUT = httpx.Timeout(10.0, connect=3.0)
MAX_BYTES = 64 * 1024 * 1024


def is_address(source: str) -> bool:
    """Whether `source` is meant as an address rather than a file."""
    return source.startswith(("http://", "https://"))


def scraped(address: str, clock: Clock) -> list[Reading]:
    """The readings that `address` shows now. A replica without an instance label is named by host and port.

    Impossible values are left out with a warning, for the rest of a live stack is still worth reading.

    Raises:
        UnreachableError: nothing answered in time.
        InputError: the address is malformed, or what answered is not Prometheus text of vLLM or HAProxy.
    """
    body = _fetched(address)
    return readings_in(
        text_of(body, address), address, time_s=clock.now_s(), replica=urlsplit(address).netloc, strict=False
    )


def _fetched(address: str) -> bytes:
    body = bytearray()
    try:
        with httpx.stream("GET", address, timeout=TIMEOUT, follow_redirects=False) as answer:
            if answer.status_code != httpx.codes.OK:
                raise InputError(f"{address}: answered {answer.status_code}; expected 200 and Prometheus text")
            for part in answer.iter_bytes():
                body += part
                if len(body) > MAX_BYTES:
                    raise InputError(f"{address}: more than {MAX_BYTES} bytes; expected Prometheus text")
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InputError(f"{address}: not an address: {error}") from error
    except httpx.HTTPError as error:
        raise UnreachableError(f"{address}: no answer: {error or type(error).__name__}") from error
    return bytes(body)
