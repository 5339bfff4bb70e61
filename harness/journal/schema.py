"""Tables of the store. The log is append-only and chained by hash; triggers keep it so."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeDecorator

IN_FLIGHT = ("armed", "unknown", "applied", "settling", "rolling_back")
"""States of which the whole stack has at most one."""


class UtcTime(TypeDecorator[datetime]):
    """An aware time; SQLite would give it back naive."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive times, store UTC."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give back an aware time."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


METADATA = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s"}
)

ACTION = Table(
    "action",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("key", String(200), unique=True),
    Column("stack", String(100), nullable=False),
    Column("state", String(20), nullable=False),
    Column("setting", String(100), nullable=False),
    Column("target", String(200), nullable=False),
    Column("setting_class", String(1), nullable=False),
    Column("proposal", JSON, nullable=False),
    Column("verdict", JSON, nullable=False),
    Column("proposed_s", Float, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("state_version", Integer),
    Column("decided_by", String(200)),
    Column("approval", JSON),
    Column("permit", JSON),
    Column("armed_s", Float),
    Column("applied_s", Float),
    Column("touched_s", Float),
    Column("ended_s", Float),
    Column("end_reason", Text),
    Column("holds", JSON),
    Column("verification", JSON),
    sqlite_autoincrement=True,
)
Index("ix_action_state", ACTION.c.state, ACTION.c.touched_s, ACTION.c.armed_s, ACTION.c.proposed_s)
"""Holds all that the gate picks the recent past by: rows of long ago need not be read to be passed over."""
_ONE = f"state IN ({', '.join(repr(state) for state in IN_FLIGHT)})"
Index("uq_action_in_flight", ACTION.c.stack, unique=True, sqlite_where=text(_ONE), postgresql_where=text(_ONE))

ENVELOPE = Table(
    "envelope",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("stack", String(100), nullable=False),
    Column("state", String(20), nullable=False),
    Column("proposal", JSON, nullable=False),
    Column("verdict", JSON, nullable=False),
    Column("proposed_s", Float, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("state_version", Integer, nullable=False),
    Column("decided_by", String(200)),
    Column("approval", JSON),
    Column("permit", JSON),
    Column("places", JSON),
    Column("opened_s", Float),
    Column("first_move_s", Float),
    Column("touched_s", Float),
    Column("ended_s", Float),
    Column("end_reason", Text),
    Column("verification", JSON),
    sqlite_autoincrement=True,
)
_OPEN = "state IN ('open', 'closing')"
Index("uq_envelope_in_force", ENVELOPE.c.stack, unique=True, sqlite_where=text(_OPEN), postgresql_where=text(_OPEN))

EVENT = Table(
    "event",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("stack", String(100)),
    Column("action_id", Integer, ForeignKey("action.id")),
    Column("time_s", Float, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("what", String(50), nullable=False),
    Column("numbers", JSON, nullable=False),
    Column("action_digest", String(64)),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)
Index("ix_event_what", EVENT.c.what, EVENT.c.stack, EVENT.c.seq)

HEAD = Table(
    "head",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("hash", String(64), nullable=False),
)
"""One row: number and hash of the log's last line, so that lines cut off its end show too."""

LEASE = Table(
    "lease",
    METADATA,
    Column("stack", String(100), primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("renewals", Integer, nullable=False),
    Column("released", Boolean, nullable=False),
    Column("machine", String(200), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("start_ticks", BigInteger, nullable=False),
)

EPISODE = Table(
    "episode",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("action_id", Integer, ForeignKey("action.id"), unique=True, nullable=False),
    Column("time_s", Float, nullable=False),
    Column("episode", JSON, nullable=False),
    Column("environment", JSON, nullable=False),
    sqlite_autoincrement=True,
)

SHADOW_SCORE = Table(
    "shadow_score",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("key", String(500), unique=True, nullable=False),
    Column("stack", String(100), nullable=False),
    Column("planner", String(20), nullable=False),
    Column("action_id", Integer, ForeignKey("action.id")),
    Column("decided_s", Float, nullable=False),
    Column("score", JSON, nullable=False),
    sqlite_autoincrement=True,
)
