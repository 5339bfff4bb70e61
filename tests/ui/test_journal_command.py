"""`flashvector journal` as a person and as a program see it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.journal.store import open_store
from stack.errors import InputError
from ui.command import application

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The journal of an action that was undone, one that was denied, and a freeze."""
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript((DATA / "journal_0001.sql").read_text(encoding="utf-8"))
    open_store(path).close()
    return path


def said(*arguments: object):
    return CliRunner().invoke(application(["journal"]), ["journal", *map(str, arguments)])


def test_verify_names_the_head_and_the_first_broken_row(path: Path, tmp_path: Path):
    whole = said("verify", "--store", path)
    assert whole.exit_code == 0 and "OK, 12 events and 2 actions, head " in whole.output
    head = json.loads(said("verify", "--store", path, "--json").output)["head"]
    assert head in whole.output
    assert said("verify", "--store", path, "--head", head).exit_code == 0
    config = tmp_path / "flashvector.toml"
    config.write_text(f'store_path = "{path}"')
    assert said("verify", "-c", config).output == whole.output
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE action SET decided_by = 'olga' WHERE id = 1")
    broken = said("verify", "--store", path)
    assert broken.exit_code == 1 and "broken at action 1 (rolled_back): its row is not what event 11" in broken.output
    assert json.loads(said("verify", "--store", path, "--json").output)["ok"] is False


def test_a_journal_that_is_not_there_is_named(tmp_path: Path):
    absent = said("verify", "--store", tmp_path / "absent.db")
    assert isinstance(absent.exception, InputError) and "absent.db: expected a journal" in str(absent.exception)
    config = tmp_path / "flashvector.toml"
    config.write_text("")
    none = said("verify", "-c", config)
    assert isinstance(none.exception, InputError) and "store_path" in str(none.exception)
