"""One text for one content, so that its hash says whether anything in it was changed."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime


def sha256_of(fields: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of `fields`: keys sorted, no spaces, ASCII, times in UTC."""
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), default=_as_text)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} has no canonical form")
