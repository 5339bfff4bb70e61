"""Lines typed while the loop runs, without waiting for them."""

import select
import sys


def typed_line() -> str | None:
    """The next line typed so far, without its end; None when there is none, or nobody to type."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    ready, _, _ = select.select([sys.stdin], [], [], 0.0)
    line = sys.stdin.readline() if ready else ""
    return line.strip() if line else None
