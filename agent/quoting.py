"""Text from elsewhere made safe to show to a model or a person: one line, bounded, no control of the layout."""

import re

LONGEST = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_MARKUP = re.compile(r"[<>`{}\[\]]")
_SECRET = re.compile(r"(?i)(bearer\s+\S+|\bsk-[\w-]{6,}|://[^/\s:@]+:[^/\s@]+@)")


def quoted(text: object, limit: int = LONGEST) -> str:
    """`text` on one line: control and markup characters and what looks like a credential removed, cut at `limit`."""
    words = str(text).replace("->", "to")
    plain = _MARKUP.sub("", _CONTROL.sub(" ", _SECRET.sub("(redacted)", words)))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def shown(piece: str) -> str:
    """A piece of a model's text for a person: line ends stay, other control and markup characters go."""
    return "\n".join(_MARKUP.sub("", _CONTROL.sub(" ", line)) for line in piece.split("\n"))
