"""Markdown whose cells are data: nothing in them becomes markup, however it was meant."""

import re
from collections.abc import Iterable, Sequence

_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&-])")
_LONGEST = 500


def plain_text(value: object) -> str:
    """`value` on one line, without control characters and with every mark escaped; a long one is cut and says so."""
    text = " ".join(str(value).split())
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text)} characters)"
    return _MARKUP.sub(r"\\\1", cut)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, with an empty line behind it."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(plain_text(cell) for cell in row)} |" for row in rows), ""]
