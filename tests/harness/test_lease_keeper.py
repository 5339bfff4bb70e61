"""A session that sleeps or waits, and a second process that stops it by what it writes into the store."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from conftest import Bench
from scripted_stack import REPLICAS, cap_action, weight_action

from harness.approval import Approve
from harness.errors import LeaseLostError
from harness.journal.journal import Journal
from harness.journal.lease import Lease, lease_of
from harness.journal.record import Record, State
from harness.journal.store import open_store
from harness.lease_keeper import EVERY_S, RENEW_S, LeaseKeeper
from harness.mode import Mode
from stack.snapshot import FLEET

PROMISED_S, RENEWED_S = 5.0, 2 * RENEW_S


def keeper(bench: Bench) -> LeaseKeeper:
    return LeaseKeeper(bench.journal, bench.executor, bench.clock)


@contextmanager
def outside(bench: Bench) -> Iterator[Journal]:
    """The journal as another process has it."""
    with closing(open_store(bench.path)) as store:
        yield Journal(store)


def within(seconds: float, true: Callable[[], bool]) -> float:
    begun_s = time.monotonic()
    while not true():
        assert time.monotonic() - begun_s < seconds
        time.sleep(0.05)
    return time.monotonic() - begun_s


def test_a_stop_from_outside_undoes_what_is_in_flight_while_the_session_sleeps(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.watch(140)
    assert bench.apply(weight_action(60.0, 40.0)).state is State.SETTLING
    with keeper(bench), outside(bench) as other:
        other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)
        within(PROMISED_S, lambda: other.halt_asked() is None)
        assert other.open_records() == ()
        assert {record.state for record in other.ended()} == {State.ROLLED_BACK}
        assert [e.what for e in other.events()][-1] == "halted" and other.frozen() == "stopped by olga"
        assert bench.stack.values["routing_weight", "r0"] == 100.0
        # the session, when it wakes, hears of both as if it had undone them itself
        assert len(bench.executor.supervise(None)) == 2 and bench.executor.supervise(None) == ()
        assert bench.propose(weight_action(target="r1")).state is State.DENIED


def test_an_undo_that_is_not_answered_is_tried_again_until_nothing_is_in_flight(bench: Bench):
    bench.watch(900)
    bench.apply()
    bench.stack.unreachable = True
    with keeper(bench), outside(bench) as other:
        other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)
        time.sleep(2.5 * EVERY_S)
        assert other.halt_asked() is not None
        bench.stack.unreachable = False
        within(PROMISED_S, lambda: other.halt_asked() is None)
        assert [record.state for record in other.ended()] == [State.ROLLED_BACK]


def test_a_write_under_way_costs_no_lease_and_nothing_follows_it_after_a_stop(bench: Bench):
    bench.watch(900)
    sending, go_on = threading.Event(), threading.Event()

    def slow(setting, target, value) -> None:
        sending.set()
        go_on.wait(20)

    bench.stack.on_write = slow
    record = bench.propose()
    session = threading.Thread(target=lambda: bench.executor.apply(record.id, mode=Mode.AUTO))
    with keeper(bench), outside(bench) as other:
        session.start()
        assert sending.wait(20)
        other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)
        before = lease_of(other._store, "stack").renewals
        within(RENEWED_S, lambda: lease_of(other._store, "stack").renewals > before)
        go_on.set()
        session.join()
        within(PROMISED_S, lambda: other.halt_asked() is None)
        assert [record.state for record in other.ended()] == [State.ROLLED_BACK]
    assert [value for _, _, value in bench.stack.writes] == [60.0, 100.0]


def test_a_freeze_between_the_second_verdict_and_the_write_prevents_it(bench: Bench):
    bench.watch(900)
    arm = bench.journal.arm

    def frozen_just_after(*arguments) -> Record:
        armed = arm(*arguments)
        with outside(bench) as other:
            other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)
        return armed

    bench.journal.arm = frozen_just_after
    assert bench.apply().state is State.NOTHING_DONE
    assert bench.stack.writes == []


def test_a_freeze_within_a_change_of_all_replicas_lets_no_write_follow_the_one_under_way(bench: Bench):
    bench.watch(900)

    def freeze(setting, target, value) -> None:
        if bench.journal.frozen() is None:
            with outside(bench) as other:
                other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)

    bench.stack.on_write = freeze
    asked = bench.propose(cap_action(16.0, 20.0, FLEET))
    bench.journal.decide(asked.id, Approve("olga", asked.proposal.digest), now_s=bench.clock.now_s())
    bench.executor.apply(asked.id, mode=Mode.AUTO)
    assert [target for _, target, value in bench.stack.writes if value == 20.0] == ["r0"]
    bench.executor.supervise(bench.stack.snapshot(60.0))
    assert {bench.stack.values["running_request_cap", name] for name in REPLICAS} == {16.0}


def test_only_a_stop_is_obeyed_and_only_once(bench: Bench):
    bench.watch(900)
    bench.apply()
    with outside(bench) as other:
        other.freeze("a person is needed", by="harness", now_s=1.0)
        keeper(bench).tick()
        assert len(bench.journal.open_records()) == 1
        other.freeze("stopped by olga", by="olga", now_s=1.0, halt=True)
        other.freeze("a person is needed once more", by="harness", now_s=1.0)
        keeper(bench).tick()
        assert bench.journal.open_records() == () and other.halt_asked() is None
        count = len(other.events())
        keeper(bench).tick()
        assert len(other.events()) == count
        other.unfreeze("all is well", by="olga", now_s=2.0)
        assert other.halt_asked() is None and other.frozen() is None


def test_the_lease_is_renewed_and_let_go_of_at_the_end(bench: Bench):
    with keeper(bench), outside(bench) as other:
        before = lease_of(other._store, "stack")
        within(RENEWED_S, lambda: lease_of(other._store, "stack").renewals > before.renewals)
    with closing(open_store(bench.path)) as store:
        assert lease_of(store, "stack").released
        assert Lease.take(store, "stack").epoch == 2


def test_a_keeper_that_lost_the_lease_keeps_nothing(bench: Bench, caplog: pytest.LogCaptureFixture):
    with keeper(bench), closing(open_store(bench.path)) as store:
        lease = Lease.take(store, "stack", clock=bench.clock)
        within(RENEWED_S, lambda: "taken over" in caplog.text)
    with closing(open_store(bench.path)) as store:
        found = lease_of(store, "stack")
        assert (found.epoch, found.released) == (lease.epoch, False)
    with pytest.raises(LeaseLostError):
        bench.executor.stop(by="olga")
