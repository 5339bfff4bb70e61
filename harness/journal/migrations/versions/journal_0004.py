"""PostgreSQL keeps the log append-only, and permits and proposals as they are, as SQLite does."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

FIXED = {"permit": "OLD.permit IS NOT NULL AND NEW.permit::text IS DISTINCT FROM OLD.permit::text"}
FIXED["proposal"] = " OR ".join(
    f"NEW.{column}::text IS DISTINCT FROM OLD.{column}::text" for column in ("proposal", "setting", "target")
)


def upgrade() -> None:
    """Create the triggers; on SQLite they are there."""
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    for table in ("event", "episode"):
        said = f"EXECUTE FUNCTION refuse('{table} is append-only')"
        op.execute(f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW {said}")
        op.execute(f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {said}")
    for column, condition in FIXED.items():
        said = f"EXECUTE FUNCTION refuse('a {column} never changes')"
        op.execute(f"CREATE TRIGGER action_{column}_fixed BEFORE UPDATE ON action FOR EACH ROW WHEN ({condition}) {said}")


def downgrade() -> None:
    """Drop them."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse() CASCADE")
