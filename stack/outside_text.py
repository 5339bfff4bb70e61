"""Text of outside origin (a label, a log line, another program's answer) without what controls or hides.

Whoever can send a request can choose such text: a user agent, a model's name, a path. It may be shown as data. It may
not end a line, run backwards, hide letters, or stand where a name of the stack stands.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import sha256

_NAME = re.compile(r"(?=.{1,96}$)([A-Za-z0-9_][A-Za-z0-9_.:/@+-]*|\[[0-9A-Fa-f:.]+\](:\d+)?)")
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Letters and marks that Unicode counts as printable and that show nothing: fillers and variation selectors."""
_SPACES = re.compile(r" {2,}")
_HIDDEN = frozenset({"Cf", "Cs", "Co", "Cn"})
"""Categories without width or meaning: zero-width and bidirectional marks, tags, surrogates, private and unassigned."""


def plain(text: str) -> str:
    """`text` on one line: what hides is left out, each run of control characters and odd spaces becomes one space."""
    if text.isprintable() and not _BLANK.search(text):
        return text
    left = "".join(_kept(character) for character in _BLANK.sub("", text))
    return _SPACES.sub(" ", left)


def plain_lines(text: str) -> str:
    """The same, with its line ends kept."""
    return "\n".join(plain(line) for line in text.split("\n"))


@lru_cache(maxsize=4096)
def name_of(text: str) -> str:
    """`text` where it has the form of a name; otherwise a stand-in that says nothing, the same for the same text."""
    return text if _NAME.fullmatch(text) else f"unnamed-{sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def _kept(character: str) -> str:
    if character.isprintable():
        return character
    return "" if unicodedata.category(character) in _HIDDEN else " "
