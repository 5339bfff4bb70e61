import pytest
from doors_app import WAYS, app_with_doors, local
from flashvector_vllm.access import LOOPBACK, READ_TOKEN, READ_TOKEN_FILE, TOKEN, TOKEN_FILE, Access
from flashvector_vllm.doors import ROUTES

SECRET = "0123456789abcdef"
FOR_READING = "fedcba9876543210"


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


def asked(client, method, path, token):
    return client.request(method, path, json={}, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("source", [READ_TOKEN, READ_TOKEN_FILE])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("writes_too", [True, False])
def test_the_token_for_reading_opens_what_reads_and_nothing_else(model, monkeypatch, tmp_path, source, way, writes_too):
    (tmp_path / "token").write_text(f"{FOR_READING}\n")
    monkeypatch.setenv(source, FOR_READING if source == READ_TOKEN else str(tmp_path / "token"))
    monkeypatch.setenv(LOOPBACK, "0")
    if writes_too:
        monkeypatch.setenv(TOKEN, SECRET)
    client = local(app_with_doors(way, model))
    assert {method for method, _ in ROUTES} == {"GET", "POST"}
    for method, path in ROUTES:
        answer = asked(client, method, path, FOR_READING)
        assert answer.status_code == (200 if method == "GET" else 403)
        assert method == "GET" or "found the one for reading" in answer.json()["errors"]["access"]
        assert (asked(client, method, path, SECRET).status_code != 403) is writes_too
        assert asked(client, method, path, f"{FOR_READING}x").status_code == 403
    assert asked(client, "DELETE", "/flashvector/limits", FOR_READING).status_code in (403, 405)


@pytest.mark.parametrize("name", [TOKEN, READ_TOKEN])
@pytest.mark.parametrize("token", ["", "short", "é" * 20])
def test_an_unusable_token_is_refused_at_start(name, token):
    with pytest.raises(ValueError, match=f"{name}: expected at least 16 ASCII characters"):
        Access.from_environment({name: token})


def test_a_token_for_reading_that_would_write_is_refused_at_start():
    with pytest.raises(ValueError, match=f"{READ_TOKEN}: expected another token than {TOKEN}") as caught:
        Access.from_environment({TOKEN: SECRET, READ_TOKEN: SECRET})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", [TOKEN_FILE, READ_TOKEN_FILE])
def test_a_missing_token_file_is_refused_at_start(name, tmp_path):
    with pytest.raises(OSError, match="absent"):
        Access.from_environment({name: str(tmp_path / "absent")})
