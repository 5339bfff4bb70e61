"""The chain of hashes: every line of the log carries the hash of the one before, so that any change to it shows.

The chain is not keyed: whoever may write to the database could compute it anew. Against that, note the head's hash
elsewhere and give it to `verify` later.
"""

from collections.abc import Mapping

from harness.canonical import sha256_of

GENESIS = "0" * 64
"""What stands in for the hash before the first line."""


def link_hash(event: Mapping[str, object]) -> str:
    """The hash of a line, over all its fields, the hash before it among them."""
    return sha256_of({name: value for name, value in event.items() if name != "hash"})


def row_digest(action: Mapping[str, object]) -> str:
    """The digest of an action's whole row. Null columns are left out, so that a later release may add some."""
    return sha256_of({name: value for name, value in action.items() if value is not None})
