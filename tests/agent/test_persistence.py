from agent.persistence import CYCLES_NEEDED, Persistence
from harness.diagnosis import Diagnosis, Finding
from stack.layer import Layer

NOTHING = Diagnosis(())


def finding(target="fleet", cause="cap_too_small"):
    return Finding(layer=Layer.BATCHING, cause=cause, claim="", severity=0.5, confidence=1, tunable=True, target=target)


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


def test_a_problem_that_went_away_begins_anew():
    assert not after(*[seen()] * (CYCLES_NEEDED - 1), NOTHING, seen()).holds(finding())


def test_another_target_or_cause_is_another_problem():
    persistence = after(*[seen(target="a")] * CYCLES_NEEDED)
    assert not persistence.holds(finding(target="b"))
    assert not persistence.holds(finding(target="a", cause="kv_pressure"))


def test_the_fleet_and_one_of_its_replicas_are_the_same_problem():
    persistence = after(*[seen(target="fleet")] * (CYCLES_NEEDED - 1), seen(target="a"))
    assert persistence.holds(finding(target="a"))
