"""Appending to the log, within the transaction that makes the change it tells of."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from harness.journal.chain import link_hash, row_digest
from harness.journal.schema import ACTION, EVENT, HEAD
from stack.redaction import redacted_tree


def append(
    connection: Connection,
    what: str,
    numbers: Mapping[str, object],
    *,
    stack: str,
    time_s: float,
    at: datetime,
    action_id: int | None = None,
) -> int:
    """Add a line to the end of the chain, with the digest of its action's row as it is now; its number is returned."""
    head = connection.execute(select(HEAD)).mappings().one()
    seq: int = head["seq"] + 1
    event: dict[str, object] = {
        "seq": seq,
        "stack": stack,
        "action_id": action_id,
        "time_s": float(time_s),
        "at": at,
        "what": what,
        "numbers": redacted_tree(numbers),
        "action_digest": None if action_id is None else digest_of(connection, action_id),
        "previous_hash": head["hash"],
    }
    event["hash"] = link_hash(event)
    connection.execute(insert(EVENT).values(**event))
    connection.execute(update(HEAD).values(seq=seq, hash=event["hash"]))
    return seq


def digest_of(connection: Connection, action_id: int) -> str:
    """The digest of an action's row as it is stored."""
    return row_digest(dict(connection.execute(select(ACTION).where(ACTION.c.id == action_id)).mappings().one()))
