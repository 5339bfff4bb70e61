"""The chain of hashes: every line of the log carries the hash of the one before, so that any change to it shows.

The chain is not keyed: whoever may write to the database could compute it anew. Against that, note the head's hash
elsewhere and give it to `verify` later.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

GENESIS = "0" * 64
"""What stands in for the hash before the first line."""


def link_hash(event: Mapping[str, object]) -> str:
    """The hash of a line: SHA-256 of the canonical JSON of all its fields, the hash before it among them."""
    return _sha256({name: value for name, value in event.items() if name != "hash"})


def row_digest(action: Mapping[str, object]) -> str:
    """The digest of an action's whole row. Null columns are left out, so that a later release may add some."""
    return _sha256({name: value for name, value in action.items() if value is not None})


def _sha256(fields: Mapping[str, object]) -> str:
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), default=_as_text)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} has no canonical form")
