"""The metric contract: what is missing, and what cannot be changed for want of it."""

import json
from collections.abc import Callable

import pytest
from live_pages import NOBODY, configuration_of
from page_server import Page, captured, serving, text

from stack.clock import WallClock
from stack.local.configuration import LocalStack
from stack.local.reading.metric_contract import HISTORY, TargetContract, check, version_problem
from stack.reading import GATEWAY

UNSUPPORTED = {"speculative_tokens": "no drafts", "usable_kv_blocks": "hybrid cache"}
LIMITS = {"vllm_version": "0.32.0", "degraded": False, "unsupported": UNSUPPORTED, "limits": {}}


def document(content: dict[str, object], status: int = 200) -> Callable[[], Page]:
    return lambda: Page((json.dumps(content).encode(),), status)


def checked(configuration: LocalStack) -> dict[str, TargetContract]:
    return {one.target: one for one in check(configuration, WallClock())}


def test_each_part_says_what_it_is_and_what_it_lacks(tmp_path):
    sound = {
        "/metrics": text(captured("steady_c4")),
        "/version": document({"version": "0.32.0+cpu"}),
        "/flashvector/limits": document(LIMITS),
    }
    bare = b'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
    plain = {"/metrics": text(bare), "/version": document({"version": "0.41.1"})}
    one_server = captured("haproxy_exporter").replace(b'server="r2"', b'server="other"')
    with (
        serving(sound) as r1,
        serving(plain) as r2,
        serving({"/metrics": text(one_server)}) as gateway,
    ):
        found = checked(configuration_of(tmp_path, r1.url, r2.url, gateway.url, NOBODY))
    assert found["r1"].found == "vLLM 0.32.0+cpu, plugin built on vLLM 0.32.0"
    assert [one.signal for one in found["r1"].missing] == ["device_free_bytes"]
    assert found["r1"].problems == ("usable_kv_blocks cannot be changed: hybrid cache",)
    assert found["r2"].found == "vLLM 0.41.1, plugin absent"
    assert {"waiting_requests", "kv_usage_ratio", "e2e_p99_s"} <= {one.signal for one in found["r2"].missing}
    outside, absent = found["r2"].problems
    assert "0.41.1 is outside 0.23 to 0.32" in outside
    assert absent.startswith("running_request_cap, tokens_per_step")
    assert "404" in absent
    assert found[GATEWAY].found == "HAProxy with servers other, r1"
    assert found[GATEWAY].problems[0].startswith("it has no server r2")
    assert "no connection" in found[HISTORY].problems[0]


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (403, {"errors": {"access": "expected the right bearer token"}}, "right bearer token"),
        (501, {"errors": {"engine": "expected --scheduler-cls"}}, "--scheduler-cls"),
        (200, {**LIMITS, "degraded": True}, "the plugin failed"),
    ],
)
def test_a_plugin_that_refuses_or_failed_says_why(tmp_path, status, answer, words):
    pages = {
        "/metrics": text(captured("steady_c4")),
        "/version": document({"version": "0.23.4"}),
        "/flashvector/limits": document(answer, status),
    }
    with serving(pages) as r1:
        found = checked(configuration_of(tmp_path, r1.url, f"{NOBODY}1", NOBODY))
    assert words in found["r1"].problems[0]
    assert "nothing of it can be read" in found["r2"].problems[0]
    assert "nothing of it can be read" in found[GATEWAY].problems[0]


@pytest.mark.parametrize("version", ["0.23.0", "0.32.0+cpu", "0.29.1rc2"])
def test_tested_versions_are_no_problem(version):
    assert version_problem(version) is None


@pytest.mark.parametrize("version", ["0.22.9", "0.33.0", "1.0.0", "dev"])
def test_other_versions_are_named(version):
    assert version in (version_problem(version) or "")
