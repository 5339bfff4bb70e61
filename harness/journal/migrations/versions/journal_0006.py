"""Proposals name the state of the stack they are for, and approvals are kept with what they cover."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SAID = "an approval never changes"


def upgrade() -> None:
    """Add the columns; what waited for a person before names no state, and expires."""
    op.add_column("action", sa.Column("state_version", sa.Integer))
    op.add_column("action", sa.Column("approval", sa.JSON))
    if op.get_bind().dialect.name == "postgresql":
        given = "OLD.approval IS NOT NULL AND NEW.approval::text IS DISTINCT FROM OLD.approval::text"
        trigger = f"FOR EACH ROW WHEN ({given}) EXECUTE FUNCTION refuse('{SAID}')"
    else:
        trigger = f"WHEN OLD.approval IS NOT NULL BEGIN SELECT RAISE(ABORT, '{SAID}'); END"
    op.execute(f"CREATE TRIGGER action_approval_fixed BEFORE UPDATE OF approval ON action {trigger}")


def downgrade() -> None:
    """Refused: the hashes of rows cover the columns."""
    raise RuntimeError("a chained journal is not taken back to the release before: restore a copy of that time")
