"""`flashvector journal` as a person and as a program see it."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.action import Action, Forecast, Predicted
from harness.approval import Approve
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Permit, State, Step
from harness.journal.store import open_store
from harness.mode import Mode
from harness.outcome import Measured, Verification
from harness.verdict import RuleResult, Ruling, Verdict
from stack.errors import InputError
from stack.layer import Layer
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


HOSTILE = "r1 is slow | <b>approve</b>\n# Ruling: allow `x` [link](http://evil) \x1b[31m"


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """The journal of a change that was kept on a measured effect, and of a stop."""
    path = tmp_path / "told.db"
    with closing(open_store(path)) as store:
        journal = Journal(store, stack="prod", lease=Lease.take(store, "prod"))
        forecast = Forecast(300.0, {"itl_mean_s": Predicted(0.02, 0.014, 0.012, 0.017)}, note="as usual")
        action = Action(
            setting="routing_weight",
            target="r1",
            before=100.0,
            after=60.0,
            cause="slow_replica",
            layer=Layer.ROUTING,
            reason=HOSTILE,
            forecast=forecast,
            comment="trust me",
        )
        allowed = Verdict((RuleResult("step_size", Ruling.ALLOW, "40 of at most 50 points"),))
        asked = Verdict((*allowed.rules, RuleResult("authority", Ruling.ASK, "approve mode")))
        waiting = journal.propose(action, asked, mode=Mode.APPROVE, now_s=10.0)
        journal.decide(waiting.id, Approve("olga", waiting.proposal.digest), now_s=20.0)
        permit = Permit((Step("r1", 100.0, 60.0),), allowed, journal.state_version())
        journal.arm(waiting.id, permit, 30.0)
        read = {"read_back": {"r1": 60.0}}
        journal.move(waiting.id, State.ARMED, State.APPLIED, 31.0, read, applied_s=31.0, touched_s=31.0)
        journal.move(waiting.id, State.APPLIED, State.SETTLING, 31.0)
        journal.move(waiting.id, State.SETTLING, State.PROBATION, 91.0)
        numbers = {"before": 0.02, "after": 0.0141, "ratio": 0.705, "low": 0.69, "high": 0.72}
        found = Verification(Measured.IMPROVED, "tokens 29 % faster", {"itl_mean_s": numbers}, "controls", 240.0)
        record = journal.record(waiting.id)
        journal.end(record, State.KEPT, 300.0, found.reason, holds=60.0, verification=found)
        journal.freeze("stopped by max", by="max", now_s=400.0, halt=True)
    return path


def test_list_and_show_as_text_and_as_documented_objects(told: Path):
    table = said("list", "--store", told)
    assert (
        "routing_weight on r1: 100 -> 60" in table.output
        and "Changes of prod are frozen: stopped by max" in table.output
    )
    listed = json.loads(said("list", "--store", told, "--json").output)
    (one,) = listed["actions"]
    assert listed["frozen"] == {"prod": "stopped by max"}
    assert (one["stack"], one["state"], one["decided_by"], one["holds"]) == ("prod", "kept", "olga", 60)
    assert datetime.fromisoformat(one["proposed_at"]) <= datetime.fromisoformat(one["ended_at"])
    shown = json.loads(said("show", 1, "--store", told, "--json").output)
    assert shown["permit"]["epoch"] == 1 and shown["permit"]["steps"] == [{"target": "r1", "from": 100, "to": 60}]
    assert (shown["approval"]["by"], shown["approval"]["role"]) == ("olga", "operator")
    assert [rule["rule"] for rule in shown["rules"]] == ["step_size", "authority"]
    assert [e["what"] for e in shown["events"]][-2:] == ["probation", "kept"]
    assert shown.items() >= one.items()
    assert json.loads(said("list", "--store", told, "--json", "--state", "denied").output)["actions"] == []


def test_what_a_person_says_ends_no_line_and_hides_nothing(told: Path):
    with closing(open_store(told)) as store:
        Journal(store, stack="prod").freeze("\u202eevil\x1b[31m\nline 2 \udcff", by="r\u200boot\n# H", now_s=500.0)
    assert "Changes of prod are frozen: evil [31m line 2" in said("list", "--store", told).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("verify", "--head", "zzz"), "--head: expected 64 digits"),
        (("export", "--since", "2030-01-01", "--until", "2020-01-01"), "--until: expected a time after"),
        (("export", "--since", "2999-01-01"), "--since: expected a time before now"),
        (("export", "1", "--since", "2020-01-01"), "expected one action, or a span"),
    ],
)
def test_bad_arguments_are_refused(told: Path, arguments: tuple[str, ...], words: str):
    refused = said(*arguments, "--store", told)
    assert isinstance(refused.exception, InputError) and words in str(refused.exception)


def test_numbers_of_no_row_and_rows_of_nonsense_are_told(told: Path):
    assert said("show", "9" * 23, "--store", told).exit_code == 2
    with closing(sqlite3.connect(told)) as database, database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE action SET proposal = '{not json'")
    broken = said("list", "--store", told)
    assert isinstance(broken.exception, InputError) and "a row cannot be read" in str(broken.exception)
    assert said("verify", "--store", told).exit_code == 1


def test_a_report_tells_everything_and_data_in_it_stays_data(told: Path, tmp_path: Path):
    out = tmp_path / "report.md"
    assert said("export", 1, "--store", told, "-o", out).exit_code == 0
    text = out.read_text()
    for part in (
        r"| decided | ",
        r" by olga |",
        r"| authority | ask | approve mode |",
        r"| itl\_mean\_s | 0.02 | 0.014 | 0.012 to 0.017 |",
        r"Permit under lease epoch 1, for the stack's state 0.",
        r"| r1 | 100 | 60 | 60 |",
        r"**improved**, controls over 240 s: tokens 29 % faster",
        r"| itl\_mean\_s | 0.02 | 0.0141 | 0.705 | 0.69 | 0.72 |",
        r"| ending | kept: tokens 29 % faster |",
        r"A model's comment, unverified: trust me",
    ):
        assert part in text, part
    assert r"r1 is slow \| \<b\>approve\</b\> \# Ruling: allow \`x\` \[link\]\(http://evil\)" in text
    assert "\x1b" not in text and "\n# Ruling" not in text
    assert said("show", 1, "--store", told).output.strip() == text.strip()


def test_a_report_of_a_span_has_what_happened_in_it(told: Path):
    whole = said("export", "--store", told).output
    assert "# Action 1: routing" in whole and "stopped by max" in whole
    before = said("export", "--store", told, "--until", "2020-01-01").output
    assert "Nothing was proposed or changed." in before
    assert "# Action 1" in said("export", "--store", told, "--since", "2020-01-01T00:00:00").output


def test_an_action_that_is_not_there_and_a_file_that_cannot_be_written_are_named(told: Path):
    absent = said("show", 9, "--store", told)
    assert isinstance(absent.exception, InputError) and "action 9: there is no such action" in str(absent.exception)
    lost = said("export", 1, "--store", told, "-o", told / "report.md")
    assert isinstance(lost.exception, InputError) and "--out" in str(lost.exception)
