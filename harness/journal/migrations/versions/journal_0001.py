"""Actions, their events, the freeze switch and episodes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

IN_FLIGHT = sa.text("state IN ('armed', 'unknown', 'applied', 'settling', 'rolling_back')")
APPEND_ONLY = ("event", "freeze", "episode")


def upgrade() -> None:
    """Create the tables, and the triggers that keep the log append-only on SQLite."""
    _actions()
    time = sa.DateTime(timezone=True)
    op.create_table(
        "event",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("action_id", sa.Integer, sa.ForeignKey("action.id", name="fk_event_action_id")),
        sa.Column("time_s", sa.Float, nullable=False),
        sa.Column("at", time, nullable=False),
        sa.Column("what", sa.String(50), nullable=False),
        sa.Column("numbers", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "freeze",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("time_s", sa.Float, nullable=False),
        sa.Column("at", time, nullable=False),
        sa.Column("frozen", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.String(200), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "episode",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column(
            "action_id",
            sa.Integer,
            sa.ForeignKey("action.id", name="fk_episode_action_id"),
            unique=True,
            nullable=False,
        ),
        sa.Column("time_s", sa.Float, nullable=False),
        sa.Column("episode", sa.JSON, nullable=False),
        sa.Column("environment", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "sqlite":
        _append_only()


def downgrade() -> None:
    """Drop everything; the log with it."""
    for table in ("episode", "freeze", "event", "action"):
        op.drop_table(table)


def _actions() -> None:
    op.create_table(
        "action",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String(200), unique=True),
        sa.Column("stack", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("setting", sa.String(100), nullable=False),
        sa.Column("target", sa.String(200), nullable=False),
        sa.Column("setting_class", sa.String(1), nullable=False),
        sa.Column("proposal", sa.JSON, nullable=False),
        sa.Column("verdict", sa.JSON, nullable=False),
        sa.Column("proposed_s", sa.Float, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_by", sa.String(200)),
        sa.Column("permit", sa.JSON),
        sa.Column("armed_s", sa.Float),
        sa.Column("applied_s", sa.Float),
        sa.Column("touched_s", sa.Float),
        sa.Column("ended_s", sa.Float),
        sa.Column("end_reason", sa.Text),
        sa.Column("holds", sa.JSON),
        sa.Column("verification", sa.JSON),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_action_state", "action", ["state"])
    op.create_index(
        "uq_action_in_flight", "action", ["stack"], unique=True, sqlite_where=IN_FLIGHT, postgresql_where=IN_FLIGHT
    )


def _append_only() -> None:
    for table in APPEND_ONLY:
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
    op.execute(
        "CREATE TRIGGER action_permit_fixed BEFORE UPDATE OF permit ON action WHEN OLD.permit IS NOT NULL "
        "BEGIN SELECT RAISE(ABORT, 'a permit never changes'); END"
    )
    op.execute(
        "CREATE TRIGGER action_proposal_fixed BEFORE UPDATE OF proposal, setting, target ON action "
        "BEGIN SELECT RAISE(ABORT, 'a proposal never changes'); END"
    )
