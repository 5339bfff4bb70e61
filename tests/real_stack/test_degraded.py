"""What breaks around a real stack, what is then said, and that the agent stays safe."""

import time
from pathlib import Path

import pytest
from live import Live, within
from traffic import users

from agent.settings import Settings
from agent.wiring import live_session
from harness.mode import Mode
from stack.errors import InputError, RefusedError, UnreachableError
from stack.local.gateway.held import held
from stack.local.live import LiveStack
from stack.local.processes.restart import restart
from stack.snapshot import FLEET

pytestmark = pytest.mark.real_stack


def test_a_second_session_is_refused_and_an_onlooker_is_not(live: Live):
    settings = Settings.load(live.file)
    refused = pytest.raises(InputError, match="another FlashVector looks after local-cpu")
    with live_session(settings), refused, live_session(settings):
        pass
    with (
        live_session(settings),
        live_session(settings.model_copy(update={"mode": Mode.SHADOW, "store_path": None})) as one,
    ):
        assert not one.cycle().blind


def test_an_onlooker_cannot_write(live: Live):
    with (
        LiveStack(live.configuration, writes=False) as stack,
        pytest.raises(RefusedError, match=r"only looks.*holds 100"),
    ):
        stack.control.write("routing_weight", "r1", 50.0)
    assert live.control.read("routing_weight", "r1") == 100.0


def test_a_lost_socket_is_named_and_nothing_is_written(live: Live):
    socket = live.configuration.run_folder / "gateway" / "admin.sock"
    away = socket.with_suffix(".away")
    socket.rename(away)
    try:
        with pytest.raises(UnreachableError, match=r"admin\.sock"):
            live.control.write("routing_weight", "r1", 50.0)
        with LiveStack(live.configuration, writes=False) as stack:
            assert stack.reader.snapshot(10.0).settings["routing_weight"]["r1"] == 100.0
    finally:
        away.rename(socket)
    assert live.control.read("routing_weight", "r1") == 100.0


def test_values_lost_at_a_reload_of_the_gateway_are_restored(live: Live):
    live.control.write("replica_concurrency_cap", "r1", 7.0)
    live.control.write("routing_weight", "r2", 60.0)
    live.control.write("queue_limit_requests", FLEET, 50.0)
    with users(live.url, 4, output=(8, 16)) as traffic:
        gateway = next(one for one in live.supervisor._services if one.name == "gateway")
        with gateway.process.held(10.0):
            gateway.stop()
        within(60, "the gateway is back with its values", lambda: _holds(live))
        time.sleep(2.0)
    assert traffic.since(time.time() - 2.0)
    assert all(one.whole for one in traffic.answers[-3:])


def _holds(live: Live) -> bool:
    try:
        values = held(live.configuration).values
    except UnreachableError:
        return False
    return (
        values["replica_concurrency_cap"]["r1"] == 7.0
        and values["routing_weight"]["r2"] == 60.0
        and values["queue_limit_requests"][FLEET] == 50.0
    )


def test_without_prometheus_own_scrapes_take_over_and_it_is_said(live: Live):
    assert live.configuration.history is not None
    nowhere = live.configuration.history.model_copy(update={"url": "http://127.0.0.1:9"})
    without = live.configuration.model_copy(update={"history": nowhere})
    with users(live.url, 2), LiveStack(without, writes=False) as stack:
        stack.clock.sleep(8.0)
        seen = stack.reader.snapshot(20.0)
    assert any("Prometheus" in warning and "own scrapes" in warning for warning in seen.warnings), seen.warnings
    assert set(seen.replicas) == set(live.names)
    assert seen.window_s


def test_a_stop_that_could_not_be_drained_says_what_it_cost(live: Live, tmp_path: Path):
    hasty = live.configuration.model_copy(
        update={"engine": live.configuration.engine.model_copy(update={"drain_s": 0.5})}
    )
    with users(live.url, 6, output=(200, 260)) as traffic:
        time.sleep(3.0)
        traffic.stop = True
        done = restart(hasty, ("r1",), None)
    assert done[0].undrained > 0
    told = (live.configuration.run_folder / "events.jsonl").read_text(encoding="utf-8")
    assert f"{done[0].undrained} requests were not finished after 0.5 s" in told
