import asyncio

import pytest
from doors_app import local
from flashvector_vllm import doors
from flashvector_vllm.worker import MEMORY, RELEASE


def test_limits_are_set_and_read_back(app):
    client = local(app)
    answer = client.post("/flashvector/limits", json={"running_request_cap": 4, "tokens_per_step": 99999})
    assert answer.status_code == 200 and answer.json()["adjusted"].keys() == {"tokens_per_step"}
    state = client.get("/flashvector/limits").json()
    assert state["limits"]["running_request_cap"] == 4 and state["bounds"]["running_request_cap"] == [1, 16]
    assert "steps" not in state


def test_steps_are_read(app):
    scheduler = app.state.engine_client.scheduler
    scheduler.schedule()
    scheduler.schedule()
    assert [row["step"] for row in local(app).get("/flashvector/steps?last=1").json()["steps"]] == [2]
    assert len(local(app).get("/flashvector/steps").json()["steps"]) == 2
    assert [row["step"] for row in local(app).get("/flashvector/steps?since=0&last=1").json()["steps"]] == [1]
    answer = local(app).get("/flashvector/steps?since=-1")
    assert answer.status_code == 400 and "expected a whole number from 0" in answer.json()["errors"]["since"]


@pytest.mark.parametrize("last", ["0", "1001", "x", "-1", "1.5", "", "²", "9" * 50])
def test_a_bad_count_of_steps_is_refused(app, last):
    answer = local(app).get("/flashvector/steps", params={"last": last})
    assert answer.status_code == 400 and "from 1 to 1000" in answer.json()["errors"]["last"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"{", 400, "body"),
        (b"", 400, "body"),
        (b"[" * 4000, 400, "body"),
        (b"\xff\xfe", 400, "body"),
        (b'{"running_request_cap": ' + b"9" * 3000 + b"}", 400, "running_request_cap"),
        (b'{"running_request_cap": NaN}', 400, "running_request_cap"),
        (b'{"cap": 4}', 400, "cap"),
        (b'{"watermark_blocks": 4, "speculative_tokens": 3}', 400, "speculative_tokens"),
        (b" " * 4097, 413, "body"),
    ],
)
def test_a_bad_body_is_refused_by_field(app, body, status, field):
    answer = local(app).post("/flashvector/limits", content=body)
    assert answer.status_code == status and field in answer.json()["errors"]


def test_other_paths_and_methods(app):
    client = local(app)
    assert client.get("/flashvector/collective_rpc").status_code == 404
    assert client.delete("/flashvector/limits").status_code == 405
    assert client.post("/flashvector/steps").status_code == 405


def test_the_queue_limit(app):
    client, settings = local(app), app.state.engine_client.vllm_config.scheduler_config
    assert client.get("/flashvector/queue_limit").json() == {"ok": True, "queue_limit_requests": None}
    assert client.post("/flashvector/queue_limit", json={"queue_limit_requests": 12}).status_code == 200
    assert settings.max_num_queued_reqs == 12
    for bad in (0, -1, "12", True, 1.5, 10**7):
        answer = client.post("/flashvector/queue_limit", json={"queue_limit_requests": bad})
        assert (
            answer.status_code == 400 and "expected a whole number" in answer.json()["errors"]["queue_limit_requests"]
        )
    assert settings.max_num_queued_reqs == 12
    assert client.post("/flashvector/queue_limit", json={"other": 1}).status_code == 400
    client.post("/flashvector/queue_limit", json={"queue_limit_requests": None})
    assert settings.max_num_queued_reqs is None


def test_the_queue_limit_needs_one_api_server_and_a_vllm_that_has_it(app):
    config = app.state.engine_client.vllm_config
    config.parallel_config._api_process_count = 2
    assert local(app).get("/flashvector/queue_limit").status_code == 501
    config.parallel_config._api_process_count = 1
    del config.scheduler_config.max_num_queued_reqs
    answer = local(app).get("/flashvector/queue_limit")
    assert answer.status_code == 501 and "0.30" in answer.json()["errors"]["queue_limit_requests"]


def test_memory_calls_reach_two_fixed_methods_only(app):
    client = local(app)
    assert len(client.get("/flashvector/memory").json()["workers"]) == 1
    assert client.post("/flashvector/memory/release", json={"method": "anything"}).status_code == 200
    assert app.state.engine_client.called == [MEMORY, RELEASE]
    app.state.engine_client.vllm_config.parallel_config.worker_extension_cls = ""
    answer = client.get("/flashvector/memory")
    assert answer.status_code == 501 and "--worker-extension-cls" in answer.json()["errors"]["engine"]


def test_another_scheduler_an_absent_or_a_dead_engine_are_told_apart(app):
    app.state.engine_client.scheduler = object()
    answer = local(app).get("/flashvector/limits")
    assert answer.status_code == 501 and "--scheduler-cls" in answer.json()["errors"]["engine"]

    async def dead(*_):
        raise RuntimeError("EngineCore died")

    app.state.engine_client.call_utility_async = dead
    answer = local(app).get("/flashvector/limits")
    assert answer.status_code == 503 and answer.json()["errors"] == {"engine": "RuntimeError: EngineCore died"}
    del app.state.engine_client
    assert local(app).get("/flashvector/limits").status_code == 503


def test_a_late_answer_is_still_taken_from_vllm(monkeypatch):
    monkeypatch.setattr(doors, "ANSWER_WITHIN_S", 0.01)
    ended = []

    async def slow():
        await asyncio.sleep(0.05)
        ended.append(True)

    async def ask():
        with pytest.raises(doors.RefusedError):
            await doors._answered(slow())
        await asyncio.sleep(0.2)

    asyncio.run(ask())
    assert ended


def test_an_engine_that_does_not_answer(app, monkeypatch):
    monkeypatch.setattr(doors, "ANSWER_WITHIN_S", 0.05)
    app.state.engine_client.call_utility_async = lambda *_: asyncio.sleep(0.2)
    answer = local(app).get("/flashvector/limits")
    assert answer.status_code == 504 and "may still happen" in answer.json()["errors"]["engine"]


def test_other_routes_are_left_alone(app):
    @app.get("/health")
    def health():
        return "well"

    assert local(app, "10.0.0.7").get("/health").json() == "well"
