"""No command shows or stores a secret: every slot holds a canary, and whoever is asked says it back."""

import json
import logging
from pathlib import Path

import pytest
from echoing import CANARIES, UNREACHABLE, Echoes, echoing, leaked
from typer.testing import CliRunner

from stack.catalogue import SETTINGS
from stack.document import toml_of
from ui.command import application


def configured(echoes: Echoes, folder: Path, **more: object) -> Path:
    """A configuration file with a secret in each slot that a file may hold."""
    path = folder / "flashvector.toml"
    document = {
        "planner": "llm",
        "llm_base_url": f"http://us:{CANARIES['llm_address']}@{echoes.llm}/v1",
        "llm_model": "scripted",
        "llm_timeout_s": 5.0,
        "metrics_urls": [f"http://look:{CANARIES['metrics']}@{echoes.gateway}/metrics"],
        **more,
    }
    path.write_text(toml_of(document), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _key(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("FLASHVECTOR_LLM_API_KEY", CANARIES["llm"])
    monkeypatch.chdir(tmp_path)
    former = logging.getLogRecordFactory()
    with caplog.at_level(logging.DEBUG):
        yield
    logging.setLogRecordFactory(former)


def output(*arguments: str) -> str:
    result = CliRunner().invoke(application(arguments), arguments)
    return f"{result.output} {result.exception!r}"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_doctor(form, tmp_path, caplog):
    with echoing(401) as echoes:
        path = configured(echoes, tmp_path, stack=echoes.document(tmp_path))
        told = output("doctor", "-c", str(path), *form)
        assert echoes.llm in told and echoes.gateway in told and echoes.history in told
    assert not leaked(told)
    assert not leaked(output("doctor", "-c", str(configured(UNREACHABLE, tmp_path)), *form))
    assert not leaked(caplog.text)


def test_run_writes_no_secret_into_its_result_the_journal_or_the_log(tmp_path, caplog):
    arguments = ("run", "--fault", "slow_replica@30", "--minutes", "6", "--json", "out.json", "--store", "journal.db")
    with echoing(500) as echoes:
        configured(echoes, tmp_path, stack=echoes.document(tmp_path))
        told = output(*arguments)
    result = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert "the LLM answered HTTP 500" in caplog.text + told + result
    assert json.loads(result)["seed"] == 0
    stored = (tmp_path / "journal.db").read_bytes().decode("utf-8", errors="replace")
    assert any(setting.name in stored for setting in SETTINGS)
    assert not leaked(told + result + stored)
    assert not leaked(caplog.text)


def test_a_wrong_file_is_named_without_what_it_holds(tmp_path):
    for slot in ({"engine_token": [CANARIES["engine_token"]]}, {"engine": {"environment": {"HF_TOKEN": 5}}}):
        path = configured(UNREACHABLE, tmp_path, stack=UNREACHABLE.document(tmp_path) | slot)
        told = output("doctor", "-c", str(path))
        assert "stack" in told and not leaked(told)
