"""When an engine counts as alive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_server import Page, serving

from stack.local.processes.heartbeat import Heartbeat, Progress, death

STUCK_S = 10.0
looks = st.lists(st.none() | st.builds(Progress, st.booleans(), st.tuples(st.integers(0, 2))), min_size=1, max_size=40)


def troubles(*timed):
    heartbeat = Heartbeat("http://127.0.0.1:8111", STUCK_S)
    return [heartbeat.trouble(look, now_s) for now_s, look in timed]


@pytest.mark.parametrize(
    ("look", "words"),
    [(Progress(True, (5,)), "has work and finishes no step"), (None, "does not say how far it is")],
)
def test_no_step_and_no_answer_for_so_long(look, words):
    told = troubles((0, Progress(True, (5,))), (9.9, look), (10, look), (12, look))
    assert told == [None, None, f"127.0.0.1:8111 {words} for 10 s", f"127.0.0.1:8111 {words} for 12 s"]


def test_an_idle_engine_is_alive_without_a_step():
    assert troubles(*((second, Progress(False, (5,))) for second in range(60))) == [None] * 60


def test_the_time_counts_from_the_moment_there_is_work():
    idle, busy = Progress(False, (5,)), Progress(True, (5,))
    assert troubles((0, idle), (30, idle), (31, busy), (39, busy)) == [None] * 4
    assert troubles((0, idle), (30, idle), (31, busy), (40, busy))[-1] is not None


@given(looks)
def test_in_trouble_exactly_when_nothing_moved_for_so_long(seen):
    """Against the definition, computed from the whole past at each look."""
    heartbeat = Heartbeat("http://127.0.0.1:8111", STUCK_S)
    for now, look in enumerate(seen):
        found = heartbeat.trouble(look, now * 3.0)
        known = [(at, one) for at, one in enumerate(seen[: now + 1]) if one is not None]
        marks = {at: one.mark for at, one in known}
        moved = [
            at
            for order, (at, one) in enumerate(known)
            if not one.working or order == 0 or one.mark != marks[known[order - 1][0]]
        ]
        last = max([0, *moved])
        assert (found is not None) == ((now - last) * 3.0 >= STUCK_S)


@pytest.mark.parametrize(("status", "dead"), [(200, False), (500, False), (503, True)])
def test_an_api_server_that_lost_its_engine_says_so(status, dead):
    with serving({"/health": lambda: Page((b"",), status)}) as server:
        found = death(server.url)
    assert (found is not None and "its engine is dead" in found) is dead


def test_a_process_that_closed_its_port_will_not_serve_again():
    assert death("http://127.0.0.1:9") == "127.0.0.1:9 runs and listens no longer"
