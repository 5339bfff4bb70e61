"""What must be true once a world that was broken is looked after in peace."""

from crash_points import Points
from crash_world import PRE, WANTED, Session, World, live

from harness.journal.audit import audit
from harness.journal.journal import Journal
from harness.journal.record import OPEN, Record, State
from harness.journal.store import Store


def heal(world: World) -> list[Record]:
    """Restart without further faults, and what was proposed in all."""
    world.break_at(Points())
    found: list[Record] = []

    def look(session: Session) -> None:
        problems = broken_promises(world, session.store, session.journal)
        assert not problems, problems
        found.extend(session.journal.records())

    assert live(world, Session.finish, look)
    return found


def broken_promises(world: World, store: Store, journal: Journal) -> list[str]:
    """What is not as it must be once a session has come to its end."""
    written = [value for _, _, value in world.stack.writes]
    found = [f"wrote {value}, neither former nor wanted" for value in written if value not in (PRE, WANTED)]
    if written.count(WANTED) > 1:
        found.append(f"the change was made more than once: {written}")
    found += [f"wrote {value} on a permit {steps}" for value, _, steps in world.seen if steps != STEPS]
    found += [f"wrote {value} while {state}" for value, state, _ in world.seen if state not in _may_write(value)]
    if len(world.seen) != len(written):
        found.append(f"{len(written)} writes, of which {len(world.seen)} had a row")
    for record in journal.records():
        found += _bad_ending(record, world, journal.frozen())
    audited = audit(store)
    return [*found, *([] if audited.broken is None else [audited.broken])]


def _bad_ending(record: Record, world: World, frozen: str | None) -> list[str]:
    holds = world.holds
    if record.outcome is None:
        return [f"action {record.id} was left {record.state}, which is no ending"]
    if record.state is State.NEEDS_PERSON and frozen is None:
        return ["a person is needed, but changes are not frozen"]
    if record.state is State.NEEDS_PERSON and world.others is None:
        return []
    expected = world.others or (WANTED if record.state is State.KEPT else PRE)
    return [] if holds == expected else [f"{record.state}, but the stack holds {holds}"]


STEPS = [{"target": "r0", "pre": PRE, "wanted": WANTED}]


def _may_write(value: float) -> frozenset[State]:
    """States in which a value may be written: the change once its permit is committed, the undo while it is open."""
    return frozenset({State.ARMED}) if value == WANTED else OPEN
