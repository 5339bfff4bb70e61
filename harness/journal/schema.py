"""Tables of the store. The journal is append-only but for an action's state; triggers keep it so."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
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
        return None if value is None else value.replace(tzinfo=UTC)


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
    Column("decided_by", String(200)),
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
Index("ix_action_state", ACTION.c.state)
_ONE = f"state IN ({', '.join(repr(state) for state in IN_FLIGHT)})"
Index("uq_action_in_flight", ACTION.c.stack, unique=True, sqlite_where=text(_ONE), postgresql_where=text(_ONE))

EVENT = Table(
    "event",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("action_id", Integer, ForeignKey("action.id")),
    Column("time_s", Float, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("what", String(50), nullable=False),
    Column("numbers", JSON, nullable=False),
    sqlite_autoincrement=True,
)

FREEZE = Table(
    "freeze",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("time_s", Float, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("frozen", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", String(200), nullable=False),
    sqlite_autoincrement=True,
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
    Column("key", String(300), unique=True, nullable=False),
    Column("stack", String(100), nullable=False),
    Column("planner", String(20), nullable=False),
    Column("action_id", Integer, ForeignKey("action.id")),
    Column("decided_s", Float, nullable=False),
    Column("score", JSON, nullable=False),
    sqlite_autoincrement=True,
)
