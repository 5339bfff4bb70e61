"""The cases of the stack that deploy/local-cpu.toml describes: two replicas of a small model, a core each.

Rates suit what such a replica can do: some 45 tokens per second for one request, 150 for four, 250 for sixteen.
"""

from evals.real_cpu.scenario import Load, Scenario, prefix_load, random_load
from stack.incident import ActionPattern, Truth
from stack.layer import Layer
from stack.snapshot import FLEET

USUAL = random_load(3.2, 96, 48)
"""Two replicas carry it with ease, one does not."""
SLOW = "answers have become slow to start, what is wrong?"


def _good(setting: str, direction: str = "raise", target: str = "any") -> ActionPattern:
    return ActionPattern.model_validate({"setting": setting, "direction": direction, "target": target})


def _tunable(layer: Layer, cause: str, *good: ActionPattern, harmful: tuple[ActionPattern, ...] = ()) -> Truth:
    return Truth(layer=layer, cause=cause, tunable=True, good_actions=good, harmful_actions=harmful)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "cap-too-small",
        "Both replicas may run one request at a time",
        SLOW,
        (random_load(1.8, 96, 48),),
        _tunable(
            Layer.BATCHING,
            "cap_too_small",
            _good("running_request_cap"),
            harmful=(_good("running_request_cap", "lower"), _good("routing_weight", "change")),
        ),
        settings=(("running_request_cap", "r1", 1.0), ("running_request_cap", "r2", 1.0)),
    ),
    Scenario(
        "kv-pool-small",
        "Most KV blocks are held back, answers are long: preemptions",
        "token times jump, what is wrong?",
        (random_load(1.5, 240, 160),),
        _tunable(
            Layer.CACHE,
            "kv_pool_small",
            _good("usable_kv_blocks_ratio"),
            _good("running_request_cap", "lower"),
            harmful=(_good("running_request_cap"), _good("usable_kv_blocks_ratio", "lower")),
        ),
        settings=(("usable_kv_blocks_ratio", "r1", 0.07), ("usable_kv_blocks_ratio", "r2", 0.07)),
    ),
    Scenario(
        "long-prompts",
        "A few very long prompts stand in the way of many short ones",
        "why do running answers stutter?",
        (random_load(1.6, 96, 48), random_load(0.2, 1800, 16)),
        _tunable(
            Layer.BATCHING,
            "long_prompt_flood",
            _good("tokens_per_step", "lower"),
            _good("long_prefill_threshold_tokens"),
            harmful=(_good("tokens_per_step"),),
        ),
    ),
    Scenario(
        "weights-uneven",
        "One replica is given fifteen times the other's share",
        SLOW,
        (USUAL,),
        _tunable(
            Layer.ROUTING,
            "weights_uneven",
            _good("routing_weight", "lower", "r1"),
            _good("routing_weight", "raise", "r2"),
            harmful=(_good("routing_weight", "raise", "r1"), _good("routing_weight", "lower", "r2")),
        ),
        settings=(("routing_weight", "r1", 240.0), ("routing_weight", "r2", 16.0)),
    ),
    Scenario(
        "prefix-scatter",
        "More shared heads than one replica's cache holds, sent round robin",
        "the prefix cache helps little, why?",
        (prefix_load(2.0, 12, 512, 32, 24),),
        _tunable(Layer.CACHE, "prefix_scatter", _good("routing_policy", "change"), _good("usable_kv_blocks_ratio")),
        settings=(("usable_kv_blocks_ratio", "r1", 0.15), ("usable_kv_blocks_ratio", "r2", 0.15)),
    ),
    Scenario(
        "prompt-timestamp",
        "Every prompt begins with the time, so that the long common part behind it is never reused",
        "the prefix cache does not help at all, why?",
        (Load(2.0, ("--custom-output-len", "24"), prompts="timestamp"),),
        Truth(layer=Layer.CACHE, cause="prompt_timestamp"),
    ),
    Scenario(
        "replica-killed",
        "The engine of one replica dies and stays away",
        "requests failed and the rest is slow, what happened?",
        (USUAL,),
        Truth(layer=Layer.ROUTING, cause="lost_replica", good_actions=(_good("replica_state", "change", "r2"),)),
        kills="r2",
    ),
    Scenario(
        "speculation-costs",
        "Drafts from the prompt that are nearly never right",
        "tokens have become slower, what is wrong?",
        (random_load(2.0, 96, 48),),
        _tunable(Layer.EXECUTION, "speculation_costs", _good("execution_profile", "change")),
        engine_arguments=(
            "--speculative-config",
            '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":2,"prompt_lookup_min":1}',
        ),
    ),
    Scenario(
        "replica-drained",
        "One replica was drained and never given back",
        SLOW,
        (USUAL,),
        _tunable(
            Layer.ROUTING,
            "replica_drained",
            _good("replica_state", "change", "r2"),
            harmful=(_good("replica_state", "change", "r1"),),
        ),
        settings=(("replica_state", "r2", "drain"),),
    ),
    Scenario("healthy-light", "A quiet hour", "is everything all right?", (random_load(0.8, 32, 32),), Truth()),
    Scenario(
        "healthy-reuse",
        "Few heads, well cached, a moderate load",
        "is everything all right?",
        (prefix_load(1.6, 4, 256, 32, 32),),
        Truth(),
        settings=(("routing_policy", FLEET, "least_connections"),),
    ),
)
"""Eleven cases, two of them healthy."""
