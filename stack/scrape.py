"""One scrape of a /metrics address."""

import httpx

from stack.clock import Clock
from stack.errors import InputError
from stack.exposition import readings_in
from stack.fetch import LIMITS, Limits, fetched
from stack.metric_line import is_known, text_of
from stack.metric_names import WIRE_NAMES
from stack.reading import Reading
from stack.redaction import place_of


def is_address(source: str) -> bool:
    """Whether `source` is meant as an address rather than a file."""
    return source.startswith(("http://", "https://"))


def scraped(
    address: str,
    clock: Clock,
    *,
    replica: str | None = None,
    limits: Limits = LIMITS,
    client: httpx.Client | None = None,
) -> list[Reading]:
    """The readings that `address` shows now.

    Impossible values are left out with a warning, for the rest of a live stack is still worth reading.

    Args:
        replica: name of a replica without an instance label; None names it by host and port.
        limits: what the answer may cost.
        client: see `stack.fetch.fetched`.

    Raises:
        UnreachableError: nothing answered in time.
        InputError: the address is malformed, or what answered is not Prometheus text of vLLM or HAProxy.
    """
    answer = fetched(address, limits=limits, client=client)
    if answer.status != httpx.codes.OK:
        raise InputError(f"{address}: answered {answer.status}; expected 200 and Prometheus text")
    text = _without_unread(text_of(answer.body, address))
    return readings_in(text, address, time_s=clock.now_s(), replica=replica or place_of(address), strict=False)


def _without_unread(text: str) -> str:
    """`text` with empty lines for samples that nobody reads: they are most, and parsing is what a scrape costs."""
    return "\n".join("" if _is_unread(line) else line for line in text.splitlines())


def _is_unread(line: str) -> bool:
    return is_known(line) and line.partition("{")[0].partition(" ")[0] not in WIRE_NAMES
