"""One replica at a time: drained, stopped, started, proved ready, given its limits and its traffic back."""

import httpx
import pytest
from small_stack import small_stack

from stack.errors import InputError, RefusedError, StackError
from stack.local.processes.engine_limits import EngineLimits
from stack.local.processes.replica_process import profile_file, replica_service
from stack.local.processes.rolling_restart import RestartableReplica, RollingRestart


class Gate:
    """A gateway that notes what it is told and knows what its replicas have."""

    def __init__(self, services, sessions=(0,)):
        self.services, self.told, self.drained = services, [], set()
        self._sessions = list(sessions)

    def drain(self, replica):
        self.told.append(("drain", replica))
        self.drained.add(replica)

    def ready(self, replica):
        assert self.services[replica].trouble() is None
        self.told.append(("ready", replica))
        self.drained.discard(replica)

    def is_drained(self, replica):
        return replica in self.drained

    def serves(self, replica):
        return replica not in self.drained and self.services[replica].process.running() is not None

    def sessions(self, replica):
        assert replica in self.drained
        return self._sessions.pop(0) if len(self._sessions) > 1 else self._sessions[0]


@pytest.fixture
def stack(tmp_path):
    return small_stack(tmp_path)


@pytest.fixture
def services(stack):
    found = {replica.name: replica_service(stack, replica) for replica in stack.replicas}
    for service in found.values():
        service.start()
    for service in found.values():
        service.wait_ready()
    yield found
    for service in found.values():
        service.stop()


@pytest.fixture
def events():
    return []


def rolling(stack, services, gate, events):
    replicas = {name: RestartableReplica(one, profile_file(stack, name)) for name, one in services.items()}
    return RollingRestart(
        replicas, gate, EngineLimits(stack), stack.engine.drain_s, lambda *event: events.append(event)
    )


def pid(service):
    return service.process.running().identity.pid


def arguments(stack, name):
    return httpx.get(f"{stack.replica(name).url}/", trust_env=False).json()["arguments"]


def test_each_in_its_turn_with_the_new_profile(stack, services, events):
    before, gate = {name: pid(one) for name, one in services.items()}, Gate(services, sessions=(2, 1, 0))
    done = rolling(stack, services, gate, events).restart(("r1", "r2"), "no_speculation")
    assert gate.told == [("drain", "r1"), ("ready", "r1"), ("drain", "r2"), ("ready", "r2")]
    assert all(pid(one) != before[name] for name, one in services.items())
    assert [(one.replica, one.profile, one.undrained) for one in done] == [
        ("r1", "no_speculation", 0),
        ("r2", "no_speculation", 0),
    ]
    assert [(what, target) for what, target, _ in events] == [("restarted", "r1"), ("restarted", "r2")]


def test_its_limits_are_given_back(stack, services, events):
    limits = EngineLimits(stack)
    limits.restore("r1", {"running_request_cap": 3})
    rolling(stack, services, Gate(services), events).restart(("r1",))
    assert limits.read("r1") == {"running_request_cap": 3}
    assert limits.read("r2") == {}


def test_requests_that_do_not_end_in_time_are_counted(stack, services, events):
    (done,) = rolling(stack, services, Gate(services, sessions=(4,)), events).restart(("r1",))
    assert done.undrained == 4
    assert 0.5 <= done.drained_s < 2.0
    assert "4 requests were not finished after 0.5 s" in events[0][2]


def test_a_profile_that_does_not_serve_is_undone(stack, services, events):
    gate = Gate(services)
    with pytest.raises(RefusedError, match="no such attention backend") as error:
        rolling(stack, services, gate, events).restart(("r1", "r2"), "eager")
    assert error.value.holds == "default"
    assert profile_file(stack, "r1").read() == "default"
    assert gate.told == [("drain", "r1"), ("ready", "r1")]
    assert "--refuse" not in arguments(stack, "r1")


def test_one_that_was_drained_before_stays_so(stack, services, events):
    gate = Gate(services)
    gate.drained.add("r1")
    rolling(stack, services, gate, events).restart(("r1",))
    assert gate.drained == {"r1"}


def test_the_last_one_that_serves_is_not_restarted(stack, services, events):
    gate = Gate(services)
    gate.drained.add("r2")
    before = pid(services["r1"])
    with pytest.raises(StackError, match="r1 is not restarted: the gateway has no other replica for its traffic"):
        rolling(stack, services, gate, events).restart(("r1",))
    assert pid(services["r1"]) == before and gate.told == []


def test_an_unknown_profile_touches_nothing(stack, services, events):
    gate = Gate(services)
    with pytest.raises(InputError, match="no execution profile 'fp8_kv'"):
        rolling(stack, services, gate, events).restart(("r1",), "fp8_kv")
    assert gate.told == []
