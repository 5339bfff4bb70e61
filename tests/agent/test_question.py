import pytest

from agent.question import AboutChanges, AboutMissing, AboutProblems, AboutSetting, Unclear, WhatIf, understand
from stack.catalogue import setting_named
from stack.snapshot import FLEET

REPLICAS = ("replica-1", "replica-12")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("why is P99 high?", AboutProblems),
        ("What is the bottleneck", AboutProblems),
        ("is everything healthy?", AboutProblems),
        ("what did you change?", AboutChanges),
        ("is anything waiting for approval", AboutChanges),
        ("which signals are missing?", AboutMissing),
        ("what is the running request cap?", AboutSetting),
        ("sing me a song", Unclear),
        ("", Unclear),
    ],
)
def test_kinds(text, kind):
    assert isinstance(understand(text, REPLICAS), kind)


@pytest.mark.parametrize(
    ("text", "name", "target", "value", "wanted"),
    [
        ("what would running_request_cap 64 on replica-12 do?", "running_request_cap", "replica-12", 64.0, False),
        ("What if tokens per step were 1024?", "tokens_per_step", FLEET, 1024.0, False),
        ("what if max_num_seqs of replica-1 were 8?", "running_request_cap", "replica-1", 8.0, False),
        ("set --max-num-batched-tokens to 2048", "tokens_per_step", FLEET, 2048.0, True),
        ("set the routing weight of replica-1 to 50", "routing_weight", "replica-1", 50.0, True),
        (
            "switch routing policy to least outstanding tokens",
            "routing_policy",
            FLEET,
            "least_outstanding_tokens",
            True,
        ),
        (
            "would routing policy least_connections on replica-1 help",
            "routing_policy",
            FLEET,
            "least_connections",
            False,
        ),
        ("lower usable kv blocks ratio to 0.85", "usable_kv_blocks_ratio", FLEET, 0.85, True),
    ],
)
def test_values_and_targets(text, name, target, value, wanted):
    assert understand(text, REPLICAS) == WhatIf(setting_named(name), target, value, wanted)


def test_a_replica_named_by_a_digit_is_not_a_value():
    assert isinstance(understand("running request cap of replica-1", REPLICAS), AboutSetting)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("set routing_weight to 60 on replica-77", "replica_77"),
        ("set running_request_cap to 64 on replica 1", "replica 1"),
        ("set routing_weight to 60 on replica-0 for 10 minutes", "several values"),
        ("set routing_weight 60 on replica-0 and 30 on replica-1", "several targets"),
        ("do not set routing_weight to 60 on replica-0", "not wanted"),
    ],
)
def test_a_wish_that_is_not_clear_is_asked_back_and_never_becomes_the_fleets(text, says):
    understood = understand(text, ["replica-0", "replica-1"])
    assert isinstance(understood, Unclear)
    assert says in understood.why
