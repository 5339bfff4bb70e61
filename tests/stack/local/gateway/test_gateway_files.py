"""What is written for HAProxy, without running it."""

import re

import pytest
from gateway_stack import configuration_for

from stack.catalogue import POLICIES
from stack.errors import InputError
from stack.local.configuration import LocalStack
from stack.local.gateway import haproxy_config
from stack.local.gateway.files import texts_of, write_files
from stack.local.gateway.launch import check, command
from stack.local.gateway.values import Start
from stack.simulator.fleet import FleetSpec
from stack.simulator.world import LOAD_BOUND, SHORT_PROMPT_TOKENS
from stack.snapshot import FLEET


def backends_in(text: str) -> dict[str, list[str]]:
    parts = re.split(r"^backend ", text, flags=re.MULTILINE)[1:]
    return {part.split()[0]: re.findall(r"^ +server .*$", part, flags=re.MULTILINE) for part in parts}


def test_every_policy_has_a_backend_with_every_replica(tmp_path):
    found = backends_in(texts_of(configuration_for(tmp_path, ["r1", "r2", "r3"]), Start())["haproxy.cfg"])
    assert set(found) == {*(f"policy_{policy}" for policy in POLICIES), "batch", "closed", "replicas"}
    assert {len(servers) for name, servers in found.items() if name != "closed"} == {3}
    assert list(found)[-1] == "replicas"


def test_a_fresh_gateway_holds_the_defaults(tmp_path):
    texts = texts_of(configuration_for(tmp_path), Start())
    assert "weight 100 maxconn 0 track replicas/r1" in texts["haproxy.cfg"]
    assert texts["choices.map"] == "routing_policy round_robin\npriority_policy fcfs\n"
    assert "queue_limit_requests 1000000\n" in texts["numbers.map"]
    assert "slots.r2 1024\n" in texts["numbers.map"]
    fleet = FleetSpec()
    for name, value in (("ttft_limit_s", fleet.ttft_limit_s), ("batch_ttft_limit_s", fleet.batch_limit_s)):
        assert f"\n{name} {value:g}\n" in texts["numbers.map"]
    assert f"ttft_limit_s_per_prompt_token {fleet.ttft_limit_s_per_token}\n" in texts["numbers.map"]


def test_it_can_start_with_other_values(tmp_path):
    values = {
        "routing_weight": {"r1": 20.0, "former": 1.0},
        "replica_concurrency_cap": {"r1": 8.0},
        "batch_in_flight_cap": {FLEET: 3.0},
        "deadline_shedding_ratio": {FLEET: 0.55},
        "routing_policy": {FLEET: "prefix_aware"},
    }
    texts = texts_of(configuration_for(tmp_path), Start(values, {"slots.r1": 16, "slots.former": 5, "nonsense": 1}))
    found = backends_in(texts["haproxy.cfg"])
    assert "weight 20 maxconn 8 " in found["policy_prefix_aware"][0]
    assert ["maxconn 3 " in line for line in found["batch"]] == [True, True]
    assert {"slots.r1 16", "batch_in_flight_cap 3", "deadline_shedding_ratio 0.55"} <= set(
        texts["numbers.map"].splitlines()
    )
    assert not any("former" in texts[name] for name in ("haproxy.cfg", "numbers.map"))
    assert "nonsense" not in texts["numbers.map"]
    assert "routing_policy prefix_aware\n" in texts["choices.map"]


def test_a_batch_server_keeps_to_the_smaller_of_both_caps(tmp_path):
    values = {"replica_concurrency_cap": {"r1": 2.0}, "batch_in_flight_cap": {FLEET: 3.0}}
    found = backends_in(texts_of(configuration_for(tmp_path), Start(values))["haproxy.cfg"])["batch"]
    assert "maxconn 2 " in found[0]
    assert "maxconn 3 " in found[1]


def test_addresses_and_times_are_those_of_the_configuration(tmp_path):
    configuration = configuration_for(tmp_path, queue_s=12.5, silence_s=30.0).model_dump()
    configuration["replicas"][0]["url"] = "http://[::1]:8111"
    text = texts_of(LocalStack.model_validate(configuration), Start())["haproxy.cfg"]
    assert "server r1 [::1]:8111 " in text
    for line in ("timeout queue 12500ms", "timeout server 30000ms", "timeout client 42500ms"):
        assert line in text


def test_figures_shared_with_the_simulator_are_the_same(tmp_path):
    assert haproxy_config.LOAD_BOUND == LOAD_BOUND
    assert haproxy_config.SHORT_PROMPT_TOKENS == SHORT_PROMPT_TOKENS
    lua = texts_of(configuration_for(tmp_path), Start())["flashvector.lua"]
    assert f"LOAD_BOUND = {LOAD_BOUND} " in lua
    assert "REQUEST_COST_TOKENS = 64 " in lua
    assert f"BYTES_PER_TOKEN = {haproxy_config.BYTES_PER_TOKEN}\n" in lua


def test_files_are_written_into_the_run_folder_for_the_owner_alone(tmp_path):
    configuration = configuration_for(tmp_path / "run")
    folder = write_files(configuration)
    assert folder == tmp_path / "run" / "gateway"
    assert folder.stat().st_mode & 0o077 == 0
    assert "-W" in command(configuration)
    assert str(folder) in command(configuration)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(InputError, match="gateway's files cannot be written"):
        write_files(configuration_for(tmp_path / "run"))


def test_a_missing_program_is_told(tmp_path):
    configuration = configuration_for(tmp_path, command="no-such-haproxy")
    write_files(configuration)
    with pytest.raises(InputError, match="no-such-haproxy: no such program; install HAProxy"):
        check(configuration)
