"""Appending to the log, within the transaction that makes the change it tells of."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, RowMapping, insert, select, update

from harness.journal.chain import link_hash, row_digest
from harness.journal.schema import EVENT, HEAD
from stack.redaction import redacted_tree

FIND_HEAD, MOVE_HEAD, ADD = select(HEAD), update(HEAD), insert(EVENT)
"""Made once, as in harness.journal.ledger."""


def append(
    connection: Connection,
    what: str,
    numbers: Mapping[str, object],
    *,
    stack: str,
    time_s: float,
    at: datetime,
    action: RowMapping | None = None,
) -> int:
    """Add a line to the end of the chain; its number is returned.

    Args:
        action: the row of the action it tells of, as it is stored now. The line carries its digest.
    """
    head = connection.execute(FIND_HEAD).mappings().one()
    seq: int = head["seq"] + 1
    event: dict[str, object] = {
        "seq": seq,
        "stack": stack,
        "action_id": None if action is None else action["id"],
        "time_s": float(time_s),
        "at": at,
        "what": what,
        "numbers": redacted_tree(numbers),
        "action_digest": None if action is None else row_digest(dict(action)),
        "previous_hash": head["hash"],
    }
    event["hash"] = link_hash(event)
    connection.execute(ADD, event)
    connection.execute(MOVE_HEAD, {"seq": seq, "hash": event["hash"]})
    return seq
