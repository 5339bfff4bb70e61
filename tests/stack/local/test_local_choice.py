"""One source per target, and silence is not a fact."""

from stack.local.reading.choice import chosen, stale_after_s
from stack.reading import GATEWAY, Reading, View

NOW_S = 1000.0


def every(replica: str, start_s: float, end_s: float, origin: str, view: View = View.ENGINE) -> list[Reading]:
    return [
        Reading(replica, start_s + 2.0 * place, view=view, origin=origin)
        for place in range(int((end_s - start_s) / 2) + 1)
    ]


def choice(past, own, targets=("r1",), problems=None):
    return chosen(past, own, problems or {}, targets, now_s=NOW_S, interval_s=2.0)


def origins(made) -> set[str]:
    return {reading.origin for reading in made.readings}


def test_prometheus_comes_first():
    made = choice(every("r1", 940, 999, "there"), every("r1", 940, 999, "here"))
    assert (origins(made), made.warnings, made.silent) == ({"there"}, (), ())


def test_a_prometheus_that_began_later_gives_way():
    made = choice(every("r1", 980, 998, "there"), every("r1", 940, 998, "here"))
    assert origins(made) == {"here"}
    assert made.warnings == ("r1: Prometheus has only 18 s of it; own scrapes were used",)


def test_a_target_that_is_old_or_unknown_there_is_taken_from_here():
    past = every("r1", 940, 980, "there")
    own = every("r1", 940, 998, "here") + every("r2", 990, 998, "here")
    made = choice(past, own, ("r1", "r2"))
    assert origins(made) == {"here"}
    assert made.warnings == (
        "r1: its newest sample in Prometheus is 20 s old; own scrapes were used",
        "r2: Prometheus has no sample of it; own scrapes were used",
    )


def test_without_prometheus_own_scrapes_need_no_word_per_target():
    assert choice(None, every("r1", 940, 998, "here")).warnings == ()


def test_the_silent_are_left_out_and_named_with_the_reason():
    made = choice(every("r1", 940, 980, "there"), every("r1", 940, 984, "here"), problems={"r1": "connection refused"})
    assert (made.readings, made.silent) == ((), ("r1",))
    assert made.warnings == ("r1: no answer for 16 s; its facts are missing (connection refused)",)


def test_what_the_gateway_says_of_a_replica_is_the_gateways_answer():
    own = every("r1", 940, 998, "gateway", View.GATEWAY) + every("r1/0", 940, 998, "engine")
    made = choice(None, own, (GATEWAY, "r1"))
    assert origins(made) == {"gateway", "engine"}
    assert choice(None, own, (GATEWAY,)).silent == ()


def test_slow_scraping_is_not_silence():
    assert stale_after_s(15.0) == 60.0
