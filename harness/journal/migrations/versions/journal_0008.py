"""Indexes that answer what is asked at every look, so that a look takes no longer the longer the journal is."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COLUMNS = {
    "ix_action_state": ("action", ["state"], ["state", "touched_s", "armed_s", "proposed_s"]),
    "ix_event_what": ("event", ["what"], ["what", "stack", "seq"]),
}


def upgrade() -> None:
    """Widen them."""
    for name, (table, _, columns) in COLUMNS.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)


def downgrade() -> None:
    """Narrow them."""
    for name, (table, columns, _) in COLUMNS.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)
