from agent.persistence import EXTREME_SEVERITY, Persistence
from harness.diagnosis import Diagnosis, Finding
from stack.layer import Layer


def finding(severity=0.5, target="fleet"):
    return Finding(
        layer=Layer.BATCHING,
        cause="cap_too_small",
        claim="",
        severity=severity,
        confidence=1,
        tunable=True,
        target=target,
    )


def test_a_problem_must_hold_for_two_cycles():
    once = Persistence().after(Diagnosis((finding(),)))
    assert not once.holds(finding())
    assert once.after(Diagnosis((finding(),))).holds(finding())


def test_a_problem_that_went_away_begins_anew():
    persistence = Persistence().after(Diagnosis((finding(),))).after(Diagnosis(())).after(Diagnosis((finding(),)))
    assert not persistence.holds(finding())


def test_another_target_is_another_problem():
    persistence = Persistence().after(Diagnosis((finding(target="a"),))).after(Diagnosis((finding(target="b"),)))
    assert not persistence.holds(finding(target="b"))


def test_an_extreme_problem_does_not_wait():
    assert Persistence().holds(finding(EXTREME_SEVERITY))
    assert not Persistence().holds(finding(EXTREME_SEVERITY - 0.01))


def test_the_fleet_and_one_of_its_replicas_are_the_same_problem():
    persistence = Persistence().after(Diagnosis((finding(target="fleet"),))).after(Diagnosis((finding(target="a"),)))
    assert persistence.holds(finding(target="a"))
