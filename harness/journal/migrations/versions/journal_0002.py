"""The log chained by hash, each line with the stack it is about; the freeze switch is read from the log."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from harness.journal.chain import GENESIS, link_hash, row_digest

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Row = dict[str, Any]


def upgrade() -> None:
    """Make the tables, and chain what was logged before; actions' rows are covered as they are now."""
    bind = op.get_bind()
    events, actions = _rows(bind, "event", "seq"), _rows(bind, "action", "id")
    op.drop_table("event")
    # Every switch of it was logged, in the same transaction.
    op.drop_table("freeze")
    _create()
    _chain(bind, events, actions)
    if bind.dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER event_no_{verb.lower()} BEFORE {verb} ON event "
                "BEGIN SELECT RAISE(ABORT, 'event is append-only'); END"
            )


def downgrade() -> None:
    """Refused: without its hashes the log would prove nothing."""
    raise RuntimeError("a chained journal is not taken back to the release before: restore a copy of that time")


def _create() -> None:
    op.create_table(
        "event",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("stack", sa.String(100)),
        sa.Column("action_id", sa.Integer, sa.ForeignKey("action.id", name="fk_event_action_id")),
        sa.Column("time_s", sa.Float, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("what", sa.String(50), nullable=False),
        sa.Column("numbers", sa.JSON, nullable=False),
        sa.Column("action_digest", sa.String(64)),
        sa.Column("previous_hash", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_index("ix_event_what", "event", ["what"])
    op.create_table(
        "head",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )


def _chain(bind: sa.Connection, events: list[Row], actions: list[Row]) -> None:
    stacks = {action["id"]: action["stack"] for action in actions}
    table = sa.Table("event", sa.MetaData(), autoload_with=bind)
    seq, previous = 0, GENESIS
    for event in [*events, *(_covering(action) for action in actions)]:
        seq += 1
        numbered = {"seq": seq, "stack": stacks.get(event["action_id"]), "previous_hash": previous}
        row = {"action_digest": None, **event, **numbered}
        previous = row["hash"] = link_hash(row)
        bind.execute(table.insert().values(**row))
    bind.execute(sa.text("INSERT INTO head (seq, hash) VALUES (:seq, :hash)"), {"seq": seq, "hash": previous})


def _covering(action: Row) -> Row:
    """A line that puts an older action's row, as it is now, under the chain."""
    return {
        "action_id": action["id"],
        "time_s": action["ended_s"] or action["proposed_s"],
        "at": datetime.now(UTC),
        "what": "chained",
        "numbers": {"state": action["state"]},
        "action_digest": row_digest(action),
    }


def _rows(bind: sa.Connection, name: str, order: str) -> list[Row]:
    table = sa.Table(name, sa.MetaData(), autoload_with=bind)
    rows = bind.execute(table.select().order_by(table.c[order])).mappings()
    return [{key: _aware(value) for key, value in row.items()} for row in rows]


def _aware(value: object) -> object:
    """SQLite gives times back without their zone, which is UTC."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value
