"""`flashvector shadow report` as a person and as a program read it."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.forecast.rehearsal import Change
from harness.journal.store import open_store
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Hindsight, Operator, Played, Score, Unscored
from ui.command import application

STACK = """
store_path = "journal.db"
[stack]
name = "paris"
run_folder = "/nowhere"
[stack.engine]
command = ["vllm"]
model = "llama"
[[stack.replicas]]
name = "r1"
url = "http://127.0.0.1:81"
[stack.gateway]
url = "http://127.0.0.1:82"
metrics_url = "http://127.0.0.1:83"
"""
CAP = "running_request_cap"
NOTHING, BEST, WORSE = Played(0.5, 8.0, 3.0), Played(0.75, 10.0, 2.0), Played(0.25, 8.0, 3.0)
MOVE = Change(CAP, "r1", 16.0)


def scored(decided_s: float, played: Played = BEST, setting: str | None = CAP) -> Score:
    named = (setting, "r1", 8.0, 16.0) if setting else (None, None, None, None)
    found = Hindsight(NOTHING, played, BEST, MOVE, 4)
    return Score(
        setting=named[0],
        target=named[1],
        before=named[2],
        after=named[3],
        action_id=None,
        decided_s=decided_s,
        planner="search",
        hindsight=found,
    )


@pytest.fixture
def config(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "paris.toml"
    path.write_text(STACK)
    store = open_store(tmp_path / "journal.db")
    record = ShadowRecord(store, stack="paris", planner="search")
    for place in range(50):
        record.add(scored(1e6 + 3600.0 * place, setting="routing_weight"))
    record.add(replace(scored(2.0e7), operator=Operator(MOVE, True, True, BEST, 9.5)))
    record.add(scored(2.1e7, WORSE))
    blind = replace(scored(2.2e7), hindsight=None, unscored=Unscored.BLIND, detail="12 of 120 s were seen")
    record.add(blind)
    record.add(scored(2.3e7, NOTHING, setting=None))
    store.close()
    return path


def report(config: Path, *options: str):
    return CliRunner().invoke(application(["shadow"]), ["shadow", "report", "-c", str(config), *options])


def test_json_has_the_documented_fields_and_the_bar_is_applied(config):
    found = json.loads(report(config, "--json", "--last", "4").stdout)
    assert list(found) == ["stack", "planner", "bar", "settings", "no_action", "decisions"]
    by_name = {one["setting"]: one for one in found["settings"]}
    assert by_name["routing_weight"]["auto_offered"] and by_name["routing_weight"]["missing"] == []
    cap = by_name[CAP]
    assert (cap["decided"], cap["scored"], cap["within"], cap["harmful"]) == (3, 2, 1, 1)
    assert not cap["auto_offered"] and "1 harmful decisions, at most 0" in cap["missing"]
    assert cap["unscored"] == {"metrics missing in its window": 1}
    assert (found["no_action"]["scored"], found["no_action"]["within"]) == (1, 0)
    assert [one["decided_s"] for one in found["decisions"]] == [2.0e7, 2.1e7, 2.2e7, 2.3e7]
    assert [one["hindsight"] and one["hindsight"]["harmful"] for one in found["decisions"]] == [
        False,
        True,
        None,
        False,
    ]


def test_a_person_reads_what_is_missing_and_each_decision_on_a_line(config):
    text = report(config).stdout
    lines = text.splitlines()
    weight = next(line for line in lines if line.lstrip().startswith("routing_weight"))
    assert "50/50" in weight and "may be chosen" in weight
    assert any(line.startswith(f"{CAP} lacks: 48 more scored decisions (2 of 50)") for line in lines)
    assert any("HARMFUL" in line and f"{CAP} on r1 8 -> 16" in line for line in lines)
    assert any("By hand" in line and "as proposed" in line for line in lines)
    assert any("no score, metrics missing in its window (12 of 120 s were seen)" in line for line in lines)
    assert any("change nothing: missed 50%" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "says"), [("mode = 'shadow'\n", "[stack]"), (STACK.replace("journal.db", "absent.db"), "absent.db")]
)
def test_what_is_not_there_is_one_line(tmp_path, text, says):
    path = tmp_path / "some.toml"
    path.write_text(text)
    command = [str(Path(sys.executable).with_name("flashvector")), "shadow", "report", "-c", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert result.returncode == 2
    assert says in result.stderr and len(result.stderr.strip().splitlines()) == 1
