from agent.persistence import CYCLES_NEEDED, Persistence
from harness.diagnosis import Diagnosis, Finding
from stack.layer import Layer

NOTHING = Diagnosis(())


def finding(target="fleet", cause="cap_too_small", layer=Layer.BATCHING):
    return Finding(layer=layer, cause=cause, claim="", severity=0.5, confidence=1, tunable=True, target=target)


def seen(**named):
    return Diagnosis((finding(**named),))


def after(*diagnoses):
    persistence = Persistence()
    for diagnosis in diagnoses:
        persistence = persistence.after(diagnosis)
    return persistence


def test_a_problem_must_last():
    assert not after(*[seen()] * (CYCLES_NEEDED - 1)).holds(finding())
    assert after(*[seen()] * CYCLES_NEEDED).holds(finding())


def test_a_quiet_cycle_takes_one_back():
    nearly = [seen()] * (CYCLES_NEEDED - 1)
    assert not after(*nearly, NOTHING, seen()).holds(finding())
    assert after(*nearly, NOTHING, seen(), seen()).holds(finding())


def test_what_is_there_half_the_time_never_lasts():
    assert not after(*[seen(), NOTHING] * 100).holds(finding())


def test_a_long_trouble_is_forgotten_soon_after_it_ended():
    assert not after(*[seen()] * 100, *[NOTHING] * CYCLES_NEEDED).holds(finding())


def test_another_target_or_cause_is_another_problem():
    persistence = after(*[seen(target="a")] * CYCLES_NEEDED)
    assert not persistence.holds(finding(target="b"))
    assert not persistence.holds(finding(target="a", cause="prefill_backlog"))


def test_a_replica_told_now_hot_now_slow_is_one_trouble():
    hot = {"target": "a", "cause": "hot_replica", "layer": Layer.ROUTING}
    slow = {"target": "a", "cause": "slow_replica", "layer": Layer.ROUTING}
    assert after(*[seen(**hot), seen(**slow)] * CYCLES_NEEDED).holds(finding(**slow))


def test_the_fleet_and_one_of_its_replicas_are_the_same_problem():
    persistence = after(*[seen(target="fleet")] * (CYCLES_NEEDED - 1), seen(target="a"))
    assert persistence.holds(finding(target="a"))
