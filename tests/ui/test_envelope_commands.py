"""Envelopes at the terminal: given with `run`, asked for and decided on in `serve`, told by `journal`."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from agent.session import Session
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.envelope.file import read_envelope
from harness.envelope.record import EnvelopeState
from stack.errors import InputError
from ui.allowance import ask_for
from ui.command import application
from ui.decision import decided
from ui.serve_command import halt
from ui.shown import Shown

WRITTEN = """
lasts_s = 600
reason = "keep the replicas even"
[[range]]
setting = "routing_weight"
low = 20
high = 120
step = 15
every_s = 15
back_after_s = 60
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("envelopes") / "weights.toml"
    path.write_text(WRITTEN)
    return path


def said(*arguments: object) -> Result:
    return CliRunner().invoke(application([str(arguments[0])]), [*map(str, arguments)])


@pytest.fixture(scope="module")
def run(file: Path) -> tuple[Path, dict, str]:
    """A run in which one replica is slow from minute seven on, its journal, result and report."""
    store, out = file.parent / "journal.db", file.parent / "out.json"
    arguments = ("--load", 0.6, "--fault", "slow_replica@420", "--minutes", 17, "--seed", 1)
    ran = said("run", *arguments, "--envelope", file, "--store", store, "--json", out)
    assert ran.exit_code == 0, ran.output
    return store, json.loads(out.read_text()), ran.output


def test_run_opens_what_whoever_starts_it_allows_and_says_what_became_of_it(run: tuple[Path, dict, str]):
    _, result, report = run
    (told,) = result["envelopes"]
    assert told["decided_by"] == "operator" and told["outcome"] in ("kept", "rolled_back", "nothing_done")
    assert 300 <= told["opened_s"] < told["ended_s"] <= 1020
    assert told["moves"] == 0 or told["places"]
    assert "envelope 1 for 600 s: routing_weight on fleet from 20 to 120" in report


def test_the_journal_tells_of_it(run: tuple[Path, dict, str]):
    store, result, _ = run
    assert "envelope 1 for 600 s" in said("journal", "list", "--store", store).output
    listed = json.loads(said("journal", "list", "--store", store, "--json").output)
    assert [one["id"] for one in listed["envelopes"]] == [1]
    whole = json.loads(said("journal", "envelope", 1, "--store", store, "--json").output)
    moves = [line for line in whole["log"] if line["what"] == "envelope_move"]
    assert sum(len(line["numbers"]["places"]) for line in moves) == result["envelopes"][0]["moves"]
    report = said("journal", "envelope", 1, "--store", store).output
    assert "# Envelope 1" in report and "## Moves" in report and "asked for by operator, decided by operator" in report
    assert said("journal", "verify", "--store", store).exit_code == 0
    assert "envelope 1" in said("journal", "export", "--store", store).output
    absent = said("journal", "envelope", 7, "--store", store)
    assert isinstance(absent.exception, InputError) and "there is no such envelope" in str(absent.exception)


def test_a_file_that_is_no_envelope_stops_run_before_anything_is_built(file: Path):
    broken = file.parent / "broken.toml"
    broken.write_text(WRITTEN.replace("step = 15", ""))
    refused = said("run", "--minutes", 1, "--envelope", broken)
    assert isinstance(refused.exception, InputError) and "range.0.step" in str(refused.exception)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("routing_weight", "foo", "no setting 'foo'"),
        ("low = 20", "low = 130", "expected finite numbers and low below high"),
    ],
)
def test_a_run_whose_envelope_is_denied_tells_it_at_once_and_fails(tmp_path: Path, old: str, new: str, words: str):
    wrong, out = tmp_path / "wrong.toml", tmp_path / "out.json"
    wrong.write_text(WRITTEN.replace(old, new))
    ran = said("run", "--load", 0.3, "--minutes", 1, "--envelope", wrong, "--json", out)
    assert isinstance(ran.exception, InputError) and "expected one that the gate allows" in str(ran.exception)
    (told,) = (line for line in ran.output.splitlines() if "The envelope is not opened yet" in line)
    assert told.startswith("  0.") and told.count(words) == 1
    assert "No envelope was opened" in ran.output and json.loads(out.read_text())["envelopes"] == []


def test_an_envelope_is_told_when_it_is_given_and_waiting_for_it_is_told_once(run: tuple[Path, dict, str]):
    _, _, report = run
    assert report.count("The envelope is not opened yet: watched for") == 1
    assert "20 to 120, 15 a step, every 15 s, back after 60 s (keep the replicas even): approved" in report


@pytest.fixture(scope="module")
def session() -> Session:
    found = simulated_session(Settings.load(mode="approve"), load=0.3, minutes=12.0)
    while found.elapsed_s < 360:
        found.cycle()
    return found


class Terminal:
    """A person at a terminal of a session, and what it has printed."""

    def __init__(self, session: Session) -> None:
        self.session, self.written = session, io.StringIO()
        self.console = Console(file=self.written, width=400)
        self.shown = Shown(self.console)

    def said(self, work: Callable[[], object]) -> str:
        begun = self.written.tell()
        work()
        return self.written.getvalue()[begun:]

    def types(self, words: str) -> str:
        return self.said(lambda: decided(self.session, self.console, words, self.shown))

    def asks(self, file: Path) -> str:
        return self.said(lambda: ask_for(self.session, self.console, file, self.shown))


def test_it_is_asked_for_by_its_file_and_decided_on_by_number(session: Session, file: Path):
    terminal = Terminal(session)
    assert "Type approve envelope 1 or reject envelope 1." in terminal.asks(file)
    assert "There is no envelope 9. Waiting for a decision: envelope 1." in terminal.types("approve envelope 9")
    assert "Type approve NUMBER" in terminal.types("approve envelope " + "9" * 5000)
    rejected = terminal.types("reject envelope 1")
    assert "rejected" in rejected and "next cycle" not in rejected
    assert "expected it to wait for a decision, found it rejected" in terminal.types("approve envelope #1")
    assert "(keep the replicas even)" in terminal.asks(file)
    elsewhere = Terminal(session)
    assert "Type approve envelope 2 or reject envelope 2." in elsewhere.types("approve envelope 2")
    assert "carried out with the next cycle" in elsewhere.types("approve envelope 2")
    session.cycle()
    assert session.envelopes()[-1].state is EnvelopeState.OPEN
    told = elsewhere.said(lambda: halt(session, elsewhere.console))
    assert "envelope 2" in told and "All changes are halted." in told


def test_what_is_shown_is_exact_and_without_control_characters(session: Session, tmp_path: Path):
    odd = tmp_path / "odd.toml"
    named = WRITTEN.replace("routing_weight", "rout\\u001b[31m\\u202eing")
    odd.write_text(named.replace("low = 20", "low = 1000000.5").replace("lasts_s = 600", "lasts_s = 600.0000001"))
    told = Terminal(session).asks(odd)
    assert "from 1000000.5 to 120" in told and "for 600.0000001 s" in told
    assert "\x1b" not in told and "\u202e" not in told


def test_a_file_that_cannot_be_read_is_said_in_one_line(session: Session, file: Path):
    told = Terminal(session).asks(file.parent / "absent.toml")
    assert "the envelope cannot be read" in told and told.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("low = 20", "low = true", "range.0.low"),
        ("low = 20", 'low = "20"', "range.0.low"),
        ("low = 20", f"low = {'9' * 5000}", "not valid TOML"),
        ("lasts_s = 600", f"lasts_s = {'[' * 3000}{']' * 3000}", "not valid TOML"),
    ],
)
def test_what_is_no_number_is_said_in_one_line(tmp_path: Path, old: str, new: str, words: str):
    path = tmp_path / "bad.toml"
    path.write_text(WRITTEN.replace(old, new))
    with pytest.raises(InputError, match=words) as refused:
        read_envelope(path, requested_by="olga")
    assert "\n" not in str(refused.value)


def test_a_path_that_cannot_be_one_is_said_in_one_line():
    with pytest.raises(InputError, match="the envelope cannot be read"):
        read_envelope(Path("weights\0.toml"), requested_by="olga")
