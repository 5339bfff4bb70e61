"""Prometheus text of vLLM and HAProxy to readings, and back."""

from stack.engine_exposition import EngineScrape
from stack.errors import InputError
from stack.gateway_exposition import GatewayScrape
from stack.metric_line import lines_in
from stack.reading import Reading
from stack.rendering import render

__all__ = ["readings_in", "render"]


def readings_in(
    text: str, source: str, *, time_s: float | None = None, replica: str | None = None, strict: bool = True
) -> list[Reading]:
    """The readings in one scrape: one per vLLM replica, one per HAProxy server, one for the gateway as a whole.

    Args:
        text: Prometheus text, with or without TYPE lines.
        source: file or address, for messages.
        time_s: when it was scraped, seconds since the epoch.
        replica: the engine's name where the caller knows it; an instance or pod label in the text goes before it.
        strict: refuse impossible values (a file); otherwise leave them out with a warning (a live stack).

    Raises:
        InputError: it is not Prometheus text, is cut off, holds a series twice or an impossible value, or has no
            metric that we know.
    """
    if strict:
        _refuse_cut_off(text, source)
    engine, gateway = EngineScrape(source, strict=strict), GatewayScrape(source, strict=strict)
    for line in lines_in(text, source):
        (gateway if line.name.startswith("haproxy_") else engine).add(line)
    found = engine.readings(time_s, replica) + gateway.readings(time_s)
    if not found:
        raise InputError(f"{source}: no known metric; expected names such as vllm:num_requests_running or haproxy_*")
    return found


def _refuse_cut_off(text: str, source: str) -> None:
    """A scrape with TYPE lines is a server's own answer, whose last line ends in a line feed."""
    if not text.endswith("\n") and "# TYPE " in text:
        line = text.count("\n") + 1
        raise InputError(f"{source}, line {line}: the text ends in the middle of a line; is the file cut off?")
