"""Envelopes: leave to move settings within bounds for a time."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = "envelope"
FIXED = ("proposal", "approval", "permit")
"""Columns that never change once they are set."""


def upgrade() -> None:
    """Create the table, and the triggers that keep what was proposed, allowed and permitted as it is."""
    op.create_table(
        TABLE,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("stack", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("proposal", sa.JSON, nullable=False),
        sa.Column("verdict", sa.JSON, nullable=False),
        sa.Column("proposed_s", sa.Float, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state_version", sa.Integer, nullable=False),
        sa.Column("decided_by", sa.String(200)),
        *(sa.Column(name, sa.JSON) for name in ("approval", "permit", "places")),
        *(sa.Column(name, sa.Float) for name in ("opened_s", "first_move_s", "touched_s", "ended_s")),
        sa.Column("end_reason", sa.Text),
        sa.Column("verification", sa.JSON),
        sqlite_autoincrement=True,
    )
    in_force = sa.text("state IN ('open', 'closing')")
    op.create_index(
        "uq_envelope_in_force", TABLE, ["stack"], unique=True, sqlite_where=in_force, postgresql_where=in_force
    )
    for column in FIXED:
        op.execute(_fixed(column, op.get_bind().dialect.name))


def _fixed(column: str, dialect: str) -> str:
    said, event = f"an envelope''s {column} never changes", f"BEFORE UPDATE OF {column} ON {TABLE}"
    if dialect == "postgresql":
        changed = f"OLD.{column} IS NOT NULL AND NEW.{column}::text IS DISTINCT FROM OLD.{column}::text"
        then = f"FOR EACH ROW WHEN ({changed}) EXECUTE FUNCTION refuse('{said}')"
    else:
        then = f"WHEN OLD.{column} IS NOT NULL BEGIN SELECT RAISE(ABORT, '{said}'); END"
    return f"CREATE TRIGGER {TABLE}_{column}_fixed {event} {then}"


def downgrade() -> None:
    """Refused: the log tells of envelopes."""
    raise RuntimeError("a chained journal is not taken back to the release before: restore a copy of that time")
