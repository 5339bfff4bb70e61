"""Scores of decisions that were not acted on."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE = "shadow_score"


def upgrade() -> None:
    """Create the table, and the triggers that keep it append-only."""
    op.create_table(
        TABLE,
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String(500), unique=True, nullable=False),
        sa.Column("stack", sa.String(100), nullable=False),
        sa.Column("planner", sa.String(20), nullable=False),
        sa.Column("action_id", sa.Integer, sa.ForeignKey("action.id", name="fk_shadow_score_action_id")),
        sa.Column("decided_s", sa.Float, nullable=False),
        sa.Column("score", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {TABLE}_no_{verb.lower()} BEFORE {verb} ON {TABLE} "
                f"BEGIN SELECT RAISE(ABORT, '{TABLE} is append-only'); END"
            )
    elif dialect == "postgresql":
        said = f"EXECUTE FUNCTION refuse('{TABLE} is append-only')"
        op.execute(f"CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE ON {TABLE} FOR EACH ROW {said}")
        op.execute(f"CREATE TRIGGER {TABLE}_no_truncate BEFORE TRUNCATE ON {TABLE} FOR EACH STATEMENT {said}")


def downgrade() -> None:
    """Drop it."""
    op.drop_table(TABLE)
