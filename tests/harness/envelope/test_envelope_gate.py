"""What the gate says of envelopes, of moves inside the one in force, and of changes beside it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from envelope_bench import WEIGHTS, weights
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_stack import REPLICAS, ManualClock, ScriptedStack, cap_action, weight_action

from harness.envelope.envelope import Envelope, Guard, Leave, Place, Range
from harness.envelope.record import EnvelopeRecord, EnvelopeState
from harness.gate.check import check
from harness.gate.envelope_check import check_envelope
from harness.gate.envelope_rules import last_moves_s
from harness.gate.history import History
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import Ruling, Verdict
from stack.snapshot import Fact, Signal, Snapshot

NOW_S = 10_000.0
LAST_S = last_moves_s(Policy.load())
WATCHED = History(watched_s=3600.0)
POLICY = Policy.load()


def seen() -> Snapshot:
    return ScriptedStack(ManualClock(NOW_S)).snapshot(60.0)


def asked(envelope: Envelope, history: History = WATCHED, snapshot: Snapshot | None = None) -> Verdict:
    return check_envelope(envelope, snapshot or seen(), history, POLICY, mode=Mode.AUTO, now_s=NOW_S)


def leave(
    envelope: Envelope | None = None, *, ends_s: float = NOW_S + 600, closing: bool = False, **r0: object
) -> Leave:
    places = [Place(setting="routing_weight", target=name, stored=100.0, last=100.0) for name in REPLICAS]
    places[0] = replace(places[0], **r0)
    return Leave(7, envelope or weights(), "olga", ends_s, tuple(places), closing)


def moved(
    after: float, inside: Leave, *, before: float = 100.0, mode: Mode = Mode.APPROVE, **history: object
) -> Verdict:
    past = replace(WATCHED, leave=inside, **history)
    action = weight_action(before, after)
    return check(action, seen(), past, POLICY, mode=mode, now_s=NOW_S, as_move=True)


def told(verdict: Verdict, rule: str) -> str:
    return next(result.detail for result in verdict.rules if result.rule == rule)


def test_a_sound_envelope_is_put_before_a_person_in_every_mode():
    assert asked(weights()).ruling is Ruling.ASK


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"low": 0.0, "high": 300.0}, "256"),
        ({"low": 110.0}, "outside 110 to 120"),
        ({"low": 120.0}, "low below high"),
        ({"step": 0.0}, "a step of 0"),
        ({"step": float("nan")}, "finite"),
        ({"every_s": 0.5}, "at least 1 s"),
        ({"back_after_s": 1.0}, "back not sooner"),
        ({"setting": "tokens_per_step"}, "was not read"),
        ({"setting": "routing_policy"}, "numeric setting of class A"),
        ({"setting": "worker_generation"}, "numeric setting of class A"),
        ({"setting": "no_such"}, "no_such"),
        ({"target": "r9"}, "r9"),
    ],
)
def test_a_range_that_asks_for_too_much_is_denied_with_its_reason(change: dict, words: str):
    verdict = asked(replace(weights(), ranges=(replace(WEIGHTS, **change),)))
    assert verdict.ruling is Ruling.DENY
    assert any(words in hit.detail for hit in verdict.hits), [hit.detail for hit in verdict.hits]


def test_a_setting_that_is_not_enabled_cannot_be_put_into_one():
    stack = ScriptedStack(ManualClock(NOW_S))
    stack.values |= {("tokens_per_step", name): 2048.0 for name in REPLICAS}
    tokens = Range(setting="tokens_per_step", low=512, high=4096, step=256, every_s=30, back_after_s=60)
    verdict = asked(replace(weights(), ranges=(tokens,)), snapshot=stack.snapshot(60.0))
    assert verdict.ruling is Ruling.DENY and "not enabled" in told(verdict, "enabled_setting")


@pytest.mark.parametrize(
    ("envelope", "history", "words"),
    [
        (weights(lasts_s=100.0), WATCHED, "to be judged"),
        (weights(lasts_s=7200.0), WATCHED, "3600"),
        (weights(lasts_s=float("inf")), WATCHED, "lasts inf"),
        (weights(), History(watched_s=60.0), "watched for 60 s"),
        (weights(), replace(WATCHED, leave=leave()), "envelope 7 is in force"),
        (weights(Guard(Signal.TTFT_P99_S, 0.1)), WATCHED, "already"),
        (weights(Guard(Signal.DEVICE_FREE_BYTES, 0.1)), WATCHED, "not measured"),
        (replace(weights(), ranges=(WEIGHTS, replace(WEIGHTS, target="r0"))), WATCHED, "two ranges"),
        (replace(weights(), ranges=()), WATCHED, "expected 1 to 8 ranges"),
    ],
)
def test_what_cannot_be_judged_or_guarded_is_denied(envelope: Envelope, history: History, words: str):
    verdict = asked(envelope, history)
    assert verdict.ruling is Ruling.DENY
    assert any(words in hit.detail for hit in verdict.hits), [hit.detail for hit in verdict.hits]


def test_nothing_is_opened_blind_or_while_changes_are_frozen():
    old = replace(seen(), time_s=NOW_S - 60)
    assert asked(weights(), snapshot=old).ruling is Ruling.DENY
    assert asked(weights(), replace(WATCHED, frozen="stopped by olga")).ruling is Ruling.DENY


def test_a_move_inside_it_is_allowed_without_asking_where_the_same_change_would_not_be():
    assert moved(90.0, leave()).ruling is Ruling.ALLOW
    assert moved(90.0, leave(), watched_s=10.0).ruling is Ruling.ALLOW
    alone = check(weight_action(100.0, 90.0), seen(), WATCHED, POLICY, mode=Mode.APPROVE, now_s=NOW_S)
    assert alone.ruling is Ruling.ASK
    assert moved(90.0, leave(), mode=Mode.SHADOW).ruling is Ruling.ASK


@pytest.mark.parametrize(
    ("after", "inside", "words"),
    [
        (89.0, leave(), "a step of 11 points, at most 10"),
        (130.0, leave(), "outside 40 to 120"),
        (90.0, leave(closing=True), "being closed"),
        (90.0, leave(ends_s=NOW_S), "its last moves"),
        (90.0, leave(ends_s=NOW_S + LAST_S), "until 0 s ago"),
        (90.0, leave(moved_s=NOW_S - 4.9, turn=-1, moves=1), "every 5 s"),
        (110.0, leave(moved_s=NOW_S - 30, turn=-1, moves=1), "back after 60 s"),
        (90.0, leave(unsure_of=110.0), "not read back"),
        (90.0, leave(last=95.0, moved_s=NOW_S - 60, moves=1), "somebody else changed it"),
    ],
)
def test_a_move_that_the_envelope_does_not_allow_is_denied(after: float, inside: Leave, words: str):
    verdict = moved(after, inside)
    assert verdict.ruling is Ruling.DENY and words in told(verdict, "inside_envelope")


@pytest.mark.parametrize("after", [90.0, 110.0])
def test_the_rules_that_it_does_not_replace_hold_inside_it(after: float):
    frozen = moved(after, leave(), frozen="stopped by olga")
    assert frozen.ruling is Ruling.DENY
    verdict = moved(after, leave())
    assert {r.rule for r in verdict.rules if "bounds of its own" in r.detail} == {
        "step_size", "enough_history", "cooldown", "reversal", "hourly_budget", "daily_budget", "minimum_gain"
    }  # fmt: skip


@pytest.mark.parametrize("mode", [Mode.APPROVE, Mode.AUTO])
def test_a_change_of_what_it_moves_waits_until_it_has_ended(mode: Mode):
    past = replace(WATCHED, leave=leave())
    verdict = check(weight_action(100.0, 90.0), seen(), past, POLICY, mode=mode, now_s=NOW_S, simulated=True)
    assert verdict.ruling is Ruling.DENY and "waits until it has ended" in told(verdict, "inside_envelope")


@pytest.mark.parametrize(
    ("before", "after", "allowed"), [(64.0, 32.0, True), (64.0, 31.0, False), (32.0, 16.0, True), (32.0, 15.0, False)]
)
def test_its_steps_leave_half_of_a_cap_that_binds_and_together_a_quarter(before: float, after: float, allowed: bool):
    verdict = capped(before, after)
    assert (verdict.ruling is Ruling.ALLOW) is allowed
    assert [hit.rule for hit in verdict.hits] == ([] if allowed else ["enough_left"])


def capped(before: float, after: float) -> Verdict:
    """A lowering of r0's cap, which binds, in an envelope in which it was 64 at first."""
    stack = ScriptedStack(ManualClock(NOW_S))
    stack.values["running_request_cap", "r0"] = before
    full = stack.snapshot(60.0)
    facts = full.replicas["r0"] | {Signal.RUNNING: Fact(before, age_s=1.0)}
    full = replace(full, replicas={**full.replicas, "r0": facts})
    cap = Range(setting="running_request_cap", target="r0", low=4, high=64, step=60, every_s=5, back_after_s=60)
    since = {} if before == 64 else {"moved_s": NOW_S - 60, "moves": 1, "turn": -1}
    place = Place(setting="running_request_cap", target="r0", stored=64.0, last=before, **since)
    row = EnvelopeRecord(
        id=7,
        stack="s",
        envelope=replace(weights(), ranges=(cap,)),
        state=EnvelopeState.OPEN,
        verdict=Verdict(()),
        proposed_s=NOW_S - 200,
        expires_at=datetime.now(UTC),
        state_version=1,
        places=(place,),
        opened_s=NOW_S - 100,
    )
    past = replace(WATCHED, leave=row.leave, past=row.past)
    return check(cap_action(before, after), full, past, POLICY, mode=Mode.APPROVE, now_s=NOW_S, as_move=True)


def test_memory_holds_inside_it_as_everywhere():
    cap = Range(setting="running_request_cap", low=8, high=32, step=8, every_s=30, back_after_s=60)
    places = tuple(Place(setting="running_request_cap", target=name, stored=16.0, last=16.0) for name in REPLICAS)
    inside = Leave(7, replace(weights(), ranges=(cap,)), "olga", NOW_S + 600, places)
    full = seen()
    facts = {**full.replicas["r0"], Signal.KV_USAGE_RATIO: Fact(0.9, age_s=1.0)}
    full = replace(full, replicas={**full.replicas, "r0": facts})
    past = replace(WATCHED, leave=inside)
    verdict = check(cap_action(16.0, 24.0), full, past, POLICY, mode=Mode.APPROVE, now_s=NOW_S, as_move=True)
    assert verdict.ruling is Ruling.DENY and "KV use" in told(verdict, "memory_headroom")


def test_beside_it_only_what_protects_is_done():
    past = replace(WATCHED, leave=leave())
    raising = check(cap_action(16.0, 20.0), seen(), past, POLICY, mode=Mode.AUTO, now_s=NOW_S, simulated=True)
    assert "only moves inside it" in told(raising, "inside_envelope")
    lowering = check(cap_action(16.0, 14.0), seen(), past, POLICY, mode=Mode.AUTO, now_s=NOW_S, simulated=True)
    assert "protective change beside envelope 7" in told(lowering, "inside_envelope")


numbers = st.one_of(st.floats(), st.floats(-50, 300), st.sampled_from([0.0, 40.0, 90.0, 110.0, 120.0]))


@settings(max_examples=300, deadline=None)
@given(before=numbers, after=numbers, held=numbers, ago_s=numbers, turn=st.sampled_from([-1, 0, 1]))
def test_whatever_is_allowed_inside_keeps_range_step_and_rate(
    before: float, after: float, held: float, ago_s: float, turn: int
):
    stack = ScriptedStack(ManualClock(NOW_S))
    stack.values["routing_weight", "r0"] = held
    inside = leave(last=held, moved_s=NOW_S - ago_s, turn=turn, moves=1)
    past = replace(WATCHED, leave=inside)
    action = weight_action(before, after)
    verdict = check(
        action, stack.snapshot(60.0), past, POLICY, mode=Mode.AUTO, now_s=NOW_S, simulated=True, as_move=True
    )
    if verdict.ruling is Ruling.ALLOW:
        assert 40 <= after <= 120 and abs(after - held) <= 10 and before == held != after
        assert ago_s >= 5 and (ago_s >= 60 or (after - held) * turn >= 0)


ranges = st.builds(
    Range,
    setting=st.sampled_from(["routing_weight", "running_request_cap", "replica_state", "x"]),
    target=st.sampled_from([*REPLICAS, "fleet", "nobody"]),
    low=numbers,
    high=numbers,
    step=numbers,
    every_s=numbers,
    back_after_s=numbers,
)


@settings(max_examples=300, deadline=None)
@given(st.builds(Envelope, ranges=st.lists(ranges, max_size=3).map(tuple), lasts_s=numbers | st.floats(100, 4000)))
def test_whatever_is_put_before_a_person_is_sound(envelope: Envelope):
    verdict = asked(envelope)
    assert verdict.ruling in (Ruling.ASK, Ruling.DENY)
    if verdict.ruling is Ruling.ASK:
        assert 240 <= envelope.lasts_s <= 3600 and envelope.ranges
        for one in envelope.ranges:
            assert one.low < one.high and 0 < one.step <= one.high - one.low and 1 <= one.every_s <= one.back_after_s
            assert one.setting in POLICY.enabled
