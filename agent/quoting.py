"""Text from elsewhere made safe to show to a model or a person: bounded, marked as data, no control of the layout."""

import re
import unicodedata

from stack.outside_text import plain, plain_lines
from stack.redaction import redacted

LONGEST = 200
_MARKUP = re.compile(r"[<>`{}\[\]]")
_MARK = re.compile(r"[<＜﹤]\s*[/／]?\s*data", re.IGNORECASE)


def quoted(text: object, limit: int = LONGEST) -> str:
    """`text` on one line, without secrets, markup, and what controls or hides; cut at `limit`."""
    cut = str(text)[: 4 * limit]  # what is cut away in the end need not be read first
    words = unicodedata.normalize("NFKC", plain(cut)).replace("->", "to")
    left = _MARKUP.sub("", redacted(plain(words)))
    return left if len(left) <= limit else left[: limit - 1] + "…"


def shown(piece: str) -> str:
    """A piece of a model's text for a person: line ends stay, other control and markup characters go."""
    return _MARKUP.sub("", plain_lines(piece))


def marked(text: str) -> str:
    """`text` as a block that a model is told is data; nothing inside can end the block."""
    inside = _MARK.sub(" ", plain_lines(text))
    return f"<data>\n{inside}\n</data>"


def spoken(text: str, limit: int) -> str:
    """What a person said, for a model: their words as they are, cut at `limit`, which cannot begin or end a block."""
    return _MARK.sub(" ", plain_lines(text[:limit]))


def sent(text: str) -> str:
    """`text` as it leaves for a model: its line ends stay, what hides and every secret goes."""
    return redacted(plain_lines(text))
