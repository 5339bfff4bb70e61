"""The local stack keeps the contract of every stack."""

import contract
import httpx
import pytest
from live import Live
from traffic import users

from stack.clock import WallClock
from stack.local.live import LiveStack
from stack.local.reading.metric_contract import check
from stack.setting import Setting
from stack.snapshot import Signal

pytestmark = pytest.mark.real_stack


@pytest.mark.parametrize("setting", contract.RESTART_FREE, ids=lambda setting: setting.name)
def test_writes_are_set_to_value(live: Live, setting: Setting):
    contract.check_a_write_is_set_to_value(live.control, setting, "r1")


@pytest.mark.parametrize("setting", contract.SETTINGS, ids=lambda setting: setting.name)
def test_bad_values_are_refused(live: Live, setting: Setting):
    contract.check_bad_values_are_refused_and_nothing_changes(live.control, setting, "r1")


def test_unknown_names_are_refused(live: Live):
    contract.check_unknown_names_are_refused(live.control, "r1")


def test_a_snapshot_is_an_account_of_its_window(live: Live):
    with users(live.url, 2), LiveStack(live.configuration, writes=False) as looking:
        looking.clock.sleep(6.0)
        contract.check_a_snapshot_is_a_frozen_account_of_its_window(looking.reader, 30.0)
        contract.check_reading_gives_no_way_to_write(looking.reader)
        seen = looking.reader.snapshot(30.0)
    assert set(seen.replicas) == set(live.names)
    told = {(name, target) for name, values in seen.settings.items() for target in values}
    wanted = {(s.name, contract.target_of(s, name)) for s in contract.SETTINGS for name in live.names}
    assert wanted <= told, wanted - told
    assert not seen.warnings


def test_a_real_engine_keeps_the_metric_contract(live: Live):
    found = {one.target: one for one in check(live.configuration, WallClock())}
    for name in live.names:
        assert found[name].found.startswith("vLLM 0.32")
        assert "plugin built on vLLM 0.32" in found[name].found
        assert [one.signal for one in found[name].missing] == [Signal.DEVICE_FREE_BYTES]


def test_the_work_of_an_engine_is_counted(live: Live):
    """By own scrapes, one request sent past the gateway."""
    alone = live.configuration.model_copy(update={"history": None})
    request = {"model": "smol", "prompt": "One two", "max_tokens": 16, "ignore_eos": True}
    with LiveStack(alone, writes=False) as looking:
        looking.reader.snapshot(30.0)
        httpx.post(f"{live.url_of('r1')}/v1/completions", json=request, timeout=120.0).raise_for_status()
        looking.clock.sleep(4.5)
        seen = looking.reader.snapshot(60.0)
    assert seen.value(Signal.GENERATION_TOKENS, "r1") == 16.0
    assert seen.value(Signal.FINISHED, "r1") == 1.0
    assert seen.value(Signal.FINISHED, "r2") in (None, 0.0)
