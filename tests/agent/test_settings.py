import tomllib
from pathlib import Path

import pytest

from agent.settings import Settings
from harness.mode import Mode
from stack.errors import InputError

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_arguments_beat_environment_beats_file(tmp_path, monkeypatch):
    (tmp_path / "flashvector.toml").write_text('mode = "shadow"\nwindow_s = 90\ncycle_s = 20\n')
    monkeypatch.setenv("FLASHVECTOR_WINDOW_S", "120")
    monkeypatch.setenv("FLASHVECTOR_CYCLE_S", "25")
    settings = Settings.load(cycle_s=30.0, store_path=None)
    assert (settings.mode, settings.window_s, settings.cycle_s) == (Mode.SHADOW, 120, 30)


def test_a_stack_starts_in_shadow_unless_told_otherwise(monkeypatch):
    monkeypatch.chdir(DEPLOY.parent)
    shipped = tomllib.loads((DEPLOY / "local-cpu.toml").read_text())
    assert Settings.load().mode is Mode.APPROVE
    assert Settings.load(stack=shipped["stack"]).mode is Mode.SHADOW
    assert Settings.load(stack=shipped["stack"], mode=Mode.AUTO).mode is Mode.AUTO
    modes = {
        name: Settings.load(DEPLOY / name).mode for name in ("local-cpu.toml", "local-gpu.toml", "compose/stack.toml")
    }
    assert modes == {"local-cpu.toml": Mode.APPROVE, "local-gpu.toml": Mode.SHADOW, "compose/stack.toml": Mode.SHADOW}


def test_in_shadow_only_the_token_for_reading_is_kept_where_there_is_one(monkeypatch):
    monkeypatch.chdir(DEPLOY.parent)
    stack = tomllib.loads((DEPLOY / "local-cpu.toml").read_text())["stack"] | {"engine_token": "opens-everything"}
    both = stack | {"engine_read_token": "opens-what-reads"}

    def held(settings: Settings) -> tuple[str, str]:
        return settings.stack.engine_token.get_secret_value(), settings.stack.engine_read_token.get_secret_value()

    assert held(Settings.load(stack=both)) == ("", "opens-what-reads")
    assert held(Settings.load(stack=both, mode=Mode.AUTO)) == ("opens-everything", "opens-what-reads")
    assert held(Settings.load(stack=both, mode=Mode.AUTO).looking()) == ("", "opens-what-reads")
    assert held(Settings.load(stack=stack)) == ("opens-everything", "")


def test_arguments_that_are_none_leave_the_default():
    assert Settings.load(slo_ttft_s=None).policy().slo.ttft_s == 1.0


def test_a_promise_given_here_beats_the_policy_of_the_file(tmp_path):
    (tmp_path / "policy.toml").write_text("[slo]\nttft_s = 3.0\nitl_s = 0.2\n")
    slo = Settings.load(policy_path=tmp_path / "policy.toml", slo_itl_s=0.1).policy().slo
    assert (slo.ttft_s, slo.itl_s) == (3.0, 0.1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("window_s = 'soon'", "window_s"),
        ("windw_s = 60", "windw_s"),
        ("enabled = ['gpu_overclock']", "gpu_overclock"),
        ("mode = ", "not valid TOML"),
        ("planner = 'oracle'", "oracle"),
    ],
)
def test_a_bad_file_is_one_line_that_names_file_and_place(tmp_path, text, says):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Settings.load(config=path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_absent_or_binary_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.toml"):
        Settings.load(config=tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.toml"):
        Settings.load(config=tmp_path / "binary.toml")


def test_a_secret_is_neither_shown_nor_quoted_in_an_error(monkeypatch):
    monkeypatch.setenv("FLASHVECTOR_LLM_API_KEY", "sk-canary")
    assert "sk-canary" not in repr(Settings.load())
    with pytest.raises(InputError) as caught:
        Settings.load(llm_api_key=["sk-canary"])
    assert "sk-canary" not in str(caught.value)


def test_the_store_is_in_one_place_and_its_password_is_quoted_nowhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert Settings.load().store is None
    assert Settings.load(store_path=tmp_path / "journal.db").store == tmp_path / "journal.db"
    url = "postgresql+psycopg://olga:canary@host/journal"
    monkeypatch.setenv("FLASHVECTOR_STORE_URL", url)
    settings = Settings.load()
    assert settings.store == url and "canary" not in repr(settings)
    with pytest.raises(InputError, match="store_path or store_url, found both") as both:
        _ = Settings.load(store_path=tmp_path / "journal.db").store
    with pytest.raises(InputError) as wrong:
        Settings.load(store_url=[url])
    assert "canary" not in str(both.value) + str(wrong.value)


def test_the_shipped_file_of_a_local_stack_is_accepted(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    settings = Settings.load(config=Path("deploy/local-cpu.toml"))
    assert settings.stack is not None
    assert settings.stack.names == ("r1", "r2")
