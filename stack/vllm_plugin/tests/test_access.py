import pytest
from doors_app import WAYS, app_with_doors, local
from flashvector_vllm.access import LOOPBACK, TOKEN, TOKEN_FILE, Access

SECRET = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_clients_on_this_machine_may(app, host):
    assert local(app, host).get("/flashvector/limits").status_code == 200
    assert local(app, host, "http://localhost:8000").get("/flashvector/limits").status_code == 200


@pytest.mark.parametrize("host", ["10.0.0.7", "::ffff:10.0.0.7", "8.8.8.8", "", "localhost.evil.example"])
@pytest.mark.parametrize("path", ["limits", "steps", "queue_limit", "memory", "anything"])
def test_others_may_not(app, host, path):
    answer = local(app, host).get(f"/flashvector/{path}")
    if path == "anything" and answer.status_code == 404:
        return  # not one of our routes: vLLM's own answer
    assert answer.status_code == 403 and "no token is set" in answer.json()["errors"]["access"]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Host", "Via", "Origin"])
def test_a_proxied_or_web_request_is_not_local(app, header):
    assert local(app).get("/flashvector/limits", headers={header: "127.0.0.1"}).status_code == 403


def test_a_foreign_host_name_is_not_local(app):
    assert local(app, url="http://rebound.example").get("/flashvector/limits").status_code == 403


@pytest.mark.parametrize("source", [TOKEN, TOKEN_FILE])
@pytest.mark.parametrize("way", WAYS)
def test_a_token_opens_from_afar(model, monkeypatch, tmp_path, source, way):
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv(source, SECRET if source == TOKEN else str(tmp_path / "token"))
    app = app_with_doors(way, model)
    far = local(app, "10.0.0.7")
    assert far.get("/flashvector/limits", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 200
    for wrong in (f"Bearer {SECRET}x", f"Basic {SECRET}", SECRET, "Bearer ", "Bearer é"):
        assert far.get("/flashvector/limits", headers={"Authorization": wrong.encode()}).status_code == 403
    assert far.get("/flashvector/limits").status_code == 403
    assert local(app).get("/flashvector/limits").status_code == 200
    monkeypatch.setenv(LOOPBACK, "0")
    assert local(app_with_doors(way, model)).get("/flashvector/limits").status_code == 403


@pytest.mark.parametrize("token", ["", "short", "é" * 20])
def test_an_unusable_token_is_refused_at_start(token):
    with pytest.raises(ValueError, match="expected at least 16 ASCII characters"):
        Access.from_environment({TOKEN: token})


def test_a_missing_token_file_is_refused_at_start(tmp_path):
    with pytest.raises(OSError, match="absent"):
        Access.from_environment({TOKEN_FILE: str(tmp_path / "absent")})
