"""Whether the log is what was written: the chain of hashes walked, and every action's row held against it."""

from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, select

from harness.journal.chain import GENESIS, link_hash, row_digest
from harness.journal.schema import ACTION, ENVELOPE, EVENT, HEAD
from harness.journal.store import Store


@dataclass(frozen=True)
class Audit:
    """What was found.

    Attributes:
        events, actions: how many lines and rows were looked at, up to the first that is broken.
        head: hash of the log's last line; note it elsewhere, and lines cut off or rewritten later show.
        broken: the first line or row that is not what was written, and how; None when all are.
    """

    events: int
    actions: int
    head: str
    broken: str | None = None


class _Broken(Exception):  # noqa: N818 - what an audit looks for
    """The first broken line or row; the text names it."""


def audit(store: Store, *, noted_head: str | None = None) -> Audit:
    """Walk the whole log of a store.

    Args:
        noted_head: a head hash noted earlier, which must still be in the chain.

    Raises:
        StoreError: the database cannot be read.
    """
    trail = _Trail()
    try:
        with store.begin() as connection:
            trail.walk(connection, noted_head)
    except _Broken as broken:
        return Audit(trail.events, trail.actions, trail.head, str(broken))
    except ValueError as error:
        place = f"a row after event {trail.events} and action {trail.actions}"
        return Audit(trail.events, trail.actions, trail.head, f"{place}: it cannot be read: {error}")
    return Audit(trail.events, trail.actions, trail.head)


class _Trail:
    """The walk, and how far it came."""

    def __init__(self) -> None:
        self.events, self.actions, self.head = 0, 0, GENESIS
        self._digests: dict[tuple[str, int], tuple[int, str | None]] = {}

    def walk(self, connection: Connection, noted_head: str | None) -> None:
        """Raise _Broken at the first row that does not fit."""
        found = noted_head in (None, GENESIS)
        for event in connection.execute(select(EVENT).order_by(EVENT.c.seq)).mappings():
            self._follow(event)
            found = found or event["hash"] == noted_head
        self._end(connection)
        for table in (ACTION, ENVELOPE):
            for row in connection.execute(select(table).order_by(table.c.id)).mappings():
                self._compare(table.name, row)
                self.actions += table is ACTION
        for kind, row_id in self._digests:
            raise _Broken(f"{kind} {row_id}: the log tells of it, but its row was removed")
        if not found:
            raise _Broken(f"event {self.events}: no line up to here has the hash {noted_head} that was noted earlier")

    def _follow(self, event: RowMapping) -> None:
        name, expected = f"event {event['seq']} ({event['what']})", self.events + 1
        if event["seq"] != expected:
            raise _Broken(f"event {expected}: it was removed, the next one is {event['seq']}")
        if event["previous_hash"] != self.head:
            raise _Broken(f"{name}: it does not follow the line before it, so one of them was replaced or inserted")
        if event["hash"] != link_hash(dict(event)):
            raise _Broken(f"{name}: its content was changed")
        if event["action_id"] is not None:
            self._digests["action", event["action_id"]] = (event["seq"], event["action_digest"])
        if "envelope_id" in event["numbers"]:
            self._digests["envelope", event["numbers"]["envelope_id"]] = (event["seq"], event["numbers"]["row_digest"])
        self.events, self.head = expected, event["hash"]

    def _end(self, connection: Connection) -> None:
        heads = [(row["seq"], row["hash"]) for row in connection.execute(select(HEAD)).mappings()]
        if not heads and self.events:
            raise _Broken("the row that names the last line: it was removed")
        if heads != [(self.events, self.head)]:
            said = ", ".join(str(seq) for seq, _ in heads) or "none"
            raise _Broken(f"event {self.events + 1}: lines were cut off or added, the last one should be {said}")

    def _compare(self, kind: str, row: RowMapping) -> None:
        name = f"{kind} {row['id']} ({row['state']})"
        seq, digest = self._digests.pop((kind, row["id"]), (0, None))
        if seq == 0:
            raise _Broken(f"{name}: no line of the log tells of it")
        if row_digest(dict(row)) != digest:
            raise _Broken(f"{name}: its row is not what event {seq} left behind")
