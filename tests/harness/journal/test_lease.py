"""One holder at a time, by the store alone; what a paused one does when it wakes is in test_paused_holder."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from scripted_stack import ManualClock, weight_action
from sqlalchemy import update

from harness.errors import LeaseHeldError, LeaseLostError
from harness.journal.holder import Holder
from harness.journal.journal import Journal
from harness.journal.lease import LEASE_S, Lease, lease_of
from harness.journal.record import Permit, State, Step
from harness.journal.schema import LEASE
from harness.journal.store import Store, open_store
from harness.mode import Mode
from harness.verdict import RuleResult, Ruling, Verdict

ALLOW = Verdict((RuleResult("authority", Ruling.ALLOW, "auto"),))
ENDED = "from harness.journal.holder import Holder; print(Holder.here().pid, Holder.here().start_ticks)"


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    store = open_store(place)
    yield store
    store.close()


def take(store: Store, stack: str = "stack", clock: ManualClock | None = None) -> Lease:
    return Lease.take(store, stack, clock=clock or ManualClock())


def led(store: Store, lease: Lease | None) -> Journal:
    return Journal(store, lease=lease)


def test_an_epoch_grows_with_every_holder(store: Store):
    first = take(store)
    first.release(store)
    second, other = take(store), take(store, "another stack")
    assert (first.epoch, second.epoch, other.epoch) == (1, 2, 1)


def test_a_holder_that_renews_keeps_others_out(store: Store):
    lease, clock = take(store), ManualClock()

    class Renewing(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.time_s > clock.time_s + LEASE_S - 1:
                led(store, lease).hold()

    with pytest.raises(LeaseHeldError, match=rf"looks after stack \(pid {os.getpid()}, lease epoch 1\)"):
        take(store, clock=Renewing())
    led(store, lease).hold()


def test_a_silent_holder_is_watched_for_the_whole_length_and_then_taken_over(store: Store):
    old, clock = take(store), ManualClock()
    begun_s = clock.now_s()
    new = take(store, clock=clock)
    assert clock.now_s() - begun_s >= LEASE_S and new.epoch == 2
    with pytest.raises(LeaseLostError, match=r"epoch 1\) was taken over"):
        led(store, old).hold()
    led(store, new).hold()


def test_a_holder_whose_process_has_ended_is_not_waited_for(store: Store):
    take(store)
    pid, ticks = subprocess.run(
        [sys.executable, "-c", ENDED], capture_output=True, text=True, check=True
    ).stdout.split()
    with store.begin() as connection:
        connection.execute(update(LEASE).values(pid=int(pid), start_ticks=int(ticks)))
    clock = ManualClock()
    assert take(store, clock=clock).epoch == 2 and clock.now_s() == ManualClock().now_s()


@pytest.mark.parametrize("machine", ["", "another boot pid:[1]"])
def test_whether_a_process_elsewhere_lives_cannot_be_told(machine: str):
    assert not Holder(machine, 2**22 + 1, 0).is_gone
    here = Holder.here()
    assert not here.is_gone and Holder(here.machine, here.pid, here.start_ticks + 1).is_gone


def test_of_many_takers_one_wins(store: Store):
    take(store).release(store)
    won: list[Lease] = []

    def try_it() -> None:
        with suppress(LeaseHeldError):
            won.append(take(store))

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = lease_of(store, "stack")
    alive = []
    for lease in won:
        with suppress(LeaseLostError):
            led(store, lease).hold()
            alive.append(lease.epoch)
    assert held is not None and alive == [held.epoch]


def test_after_the_loss_nothing_at_all_is_written(store: Store):
    old = led(store, take(store))
    waiting = old.propose(weight_action(), ALLOW, mode=Mode.AUTO, now_s=1.0)
    armed = old.propose(weight_action(target="r1"), ALLOW, mode=Mode.AUTO, now_s=1.0)
    old.arm(armed.id, Permit((Step("r1", 100.0, 60.0),), ALLOW, old.state_version()), 2.0)
    new = led(store, take(store))
    before = new.events()
    for attempt in (
        lambda: old.propose(weight_action(), ALLOW, mode=Mode.AUTO, now_s=3.0),
        lambda: old.move(armed.id, State.ARMED, State.APPLIED, 3.0),
        lambda: old.arm(waiting.id, Permit((Step("r0", 100.0, 60.0),), ALLOW, old.state_version()), 3.0),
        lambda: old.note(armed.id, "write_failed", 3.0, {}),
        lambda: old.freeze("fire", by="olga", now_s=3.0),
    ):
        with pytest.raises(LeaseLostError):
            attempt()
    assert new.events() == before and new.record(armed.id).state is State.ARMED
    new.move(armed.id, State.ARMED, State.ROLLING_BACK, 4.0)


def test_without_a_lease_nothing_that_has_an_effect_can_be_written(store: Store):
    looking = led(store, None)
    record = looking.propose(weight_action(), ALLOW, mode=Mode.AUTO, now_s=1.0)
    permit = Permit((Step("r0", 100.0, 60.0),), ALLOW, looking.state_version())
    with pytest.raises(LeaseLostError, match="does not hold the lease on stack"):
        looking.arm(record.id, permit, 2.0)
    with pytest.raises(LeaseLostError):
        looking.move(record.id, State.APPROVED, State.ARMED, 2.0)
    with pytest.raises(LeaseLostError):
        looking.hold()
    led(store, take(store)).arm(record.id, permit, 2.0)
    with pytest.raises(LeaseLostError):
        looking.move(record.id, State.ARMED, State.ROLLING_BACK, 3.0)


def test_our_own_clock_tells_how_long_it_is_surely_held(store: Store):
    clock = ManualClock()
    journal = led(store, take(store, clock=clock))
    clock.sleep(LEASE_S - 6)
    assert journal.surely_held
    clock.sleep(2)
    assert not journal.surely_held
    journal.hold()
    assert journal.surely_held


def test_a_permit_names_its_epoch_and_is_void_when_the_stack_changes_meanwhile(store: Store):
    journal = led(store, take(store))
    first = journal.propose(weight_action(), ALLOW, mode=Mode.AUTO, now_s=1.0)
    permit = Permit((Step("r0", 100.0, 60.0),), ALLOW, journal.state_version())
    journal.freeze("fire", by="olga", now_s=2.0)
    journal.unfreeze("out", by="olga", now_s=3.0)
    with pytest.raises(Exception, match="changed or frozen meanwhile"):
        journal.arm(first.id, permit, 4.0)
    version = journal.state_version()
    journal.arm(first.id, Permit(permit.steps, ALLOW, version), 5.0)
    committed = journal.record(first.id).permit
    assert committed is not None and (committed.epoch, committed.state_version) == (1, version)
