"""Secrets are kept out of whatever is written down: what was made known as one, and what looks like one.

What is made known here holds for the whole process and is never taken back: a secret does not stop being one, and
whoever writes a line cannot know whose error text he was handed.
"""

import logging
import re
from base64 import b64encode
from collections.abc import Mapping
from enum import Enum
from traceback import format_exception
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from stack.outside_text import plain

REDACTED = "(redacted)"
SHORTEST = 6
"""A shorter value is no secret, and its letters stand in ordinary words."""
SECRET_NAME = re.compile(r"(?i)(api[_-]?key|token|secret|passw(or)?d|credential)s?$")
"""How variables and arguments that hold a secret end."""
_LOOKS_SECRET: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(://)[^/\s\"'@]+@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?i)\b(bearer\s+)(?=[\w.~+/=-]*[\d._~+/=-]\w|\w{20})[^\s\"',;}]+"), rf"\1{REDACTED}"),
    (re.compile(r"(?i)(authorization[\"']?\s*[:=]\s*[\"']?basic\s+)[^\s\"',;}]+"), rf"\1{REDACTED}"),
    (re.compile(r"\bsk-[\w-]{6,}|\bhf_[A-Za-z0-9]{16,}|\bgh[a-z]_\w{16,}|\bglpat-[\w-]{16,}"), REDACTED),
    (re.compile(r"\bAKIA[0-9A-Z]{12,}|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), REDACTED),
    (
        re.compile(r"(?i)((?:api[_-]?key|token|secret|passw(?:or)?d)(?:=|[\"']\s*[:=]\s*[\"']))[^\s\"',;&}]+"),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(?i)(--[\w-]*(?:key|token|secret|password)\s+)[^\s\"',;}]+"), rf"\1{REDACTED}"),
)
_HINT = re.compile(r"(?i)://|bearer|authorization|sk-|hf_|gh[a-z]_|glpat-|akia|eyj|key|token|secret|passw")
"""Stands in every text that a pattern above can match, and in few others: most texts are looked at once."""
_known: set[str] = set()


def keep_secret(value: str) -> None:
    """From now on `value` is written down nowhere, however it comes back: as it is, percent-encoded or in JSON."""
    if len(value) >= SHORTEST:
        _known.update({value, quote(value, safe=""), value.encode("unicode_escape").decode()})


def keep_url_secret(url: str) -> None:
    """The same for the user's name and password in an address, if it is one and has any."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    for part in (parts.password, parts.username if parts.password is None else None):
        if part:
            keep_secret(part)
            keep_secret(unquote(part))
    if parts.password is not None:
        both = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        keep_secret(b64encode(both.encode()).decode())


def place_of(url: str) -> str:
    """Host and port of an address, without a user's name and password."""
    return urlsplit(url).netloc.rpartition("@")[2]


def redacted(text: str) -> str:
    """`text` without secrets."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, REDACTED)
    if _HINT.search(text):
        for pattern, instead in _LOOKS_SECRET:
            text = pattern.sub(instead, text)
    return text


def clean(text: str) -> str:
    """What another program said, as it may be written down: plain, see `stack.outside_text`, and without secrets."""
    return redacted(plain(text))


def redacted_tree(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """`value` with every text in it redacted; enumerations and numbers are left as they are."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return redacted(value)
    if isinstance(value, Mapping):
        return {key: redacted_tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted_tree(item) for item in value]
    return value


class RedactedRecord(logging.LogRecord):
    """A log record without secrets, those in an exception's text included. It holds for every handler there will be."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - logging's own
        super().__init__(*arguments, **named)
        if self.exc_info and self.exc_info[0] is not None:
            self.exc_text = redacted("".join(format_exception(*self.exc_info)).rstrip("\n"))

    def getMessage(self) -> str:  # noqa: N802 - logging's own name
        """The message as it is written down."""
        return redacted(super().getMessage())


def redact_logs() -> None:
    """From now on every log record of this process is redacted; doing it again changes nothing."""
    logging.setLogRecordFactory(RedactedRecord)
