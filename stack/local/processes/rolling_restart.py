"""Restart replicas one at a time without a failed request: drain, stop, start, prove ready, let traffic back."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stack.errors import FlashVectorError, RefusedError, StackError
from stack.local.processes.events import Tell, What
from stack.local.processes.profile import ProfileFile
from stack.local.processes.service import Service

POLL_S = 0.2
LOCK_WAIT_S = 30.0
SEEN_WITHIN_S = 30.0


class Gate(Protocol):
    """Who gets traffic."""

    def drain(self, replica: str) -> None:
        """Give it no new request; those it has go on."""
        ...

    def ready(self, replica: str) -> None:
        """Give it requests again."""
        ...

    def is_drained(self, replica: str) -> bool:
        """Whether somebody keeps new requests from it."""
        ...

    def serves(self, replica: str) -> bool:
        """Whether the gateway would send it a request now: it is not drained, and its health checks succeed."""
        ...

    def sessions(self, replica: str) -> int:
        """Requests it has from the gateway now."""
        ...


class Limits(Protocol):
    """Limits inside an engine, which a restart forgets."""

    def read(self, replica: str) -> Mapping[str, int]:
        """What was set since its start."""
        ...

    def restore(self, replica: str, limits: Mapping[str, int]) -> None:
        """Set it again."""
        ...


@dataclass(frozen=True)
class Restarted:
    """How one restart went.

    Attributes:
        replica: which one.
        profile: in force now.
        drained_s: how long it took to finish its requests.
        undrained: requests it still had when it was stopped; each of them failed.
        ready_s: from start to the first answered request.
    """

    replica: str
    profile: str
    drained_s: float
    undrained: int
    ready_s: float


@dataclass(frozen=True)
class RestartableReplica:
    """A replica that can be restarted.

    Attributes:
        service: its process.
        profile: what it is started with.
    """

    service: Service
    profile: ProfileFile


class RollingRestart:
    """Restarts replicas of one stack.

    Args:
        replicas: all of the stack, by name.
        gate: who gets traffic.
        limits: what has to be carried over.
        drain_s: longest time a replica gets to finish its requests.
        tell: hears of each step.
    """

    def __init__(
        self, replicas: Mapping[str, RestartableReplica], gate: Gate, limits: Limits, drain_s: float, tell: Tell
    ) -> None:
        self._replicas, self._gate, self._limits = replicas, gate, limits
        self._drain_s, self._tell = drain_s, tell

    def restart(self, names: Sequence[str], profile: str | None = None) -> list[Restarted]:
        """Restart these replicas, one after the other; stops at the first that fails.

        Args:
            names: which ones.
            profile: what to start them with; None keeps each one's.

        Raises:
            RefusedError: a replica does not serve with the profile; it runs again with the one before.
            StackError: no other replica could take the traffic, or this one does not come back; it stays drained.
        """
        for name in names:
            self._replicas[name].profile.known(profile or self._replicas[name].profile.read())
        return [self._restart(name, profile) for name in names]

    def _restart(self, name: str, profile: str | None) -> Restarted:
        replica = self._replicas[name]
        with replica.service.process.held(LOCK_WAIT_S) as ours:
            if not ours:
                raise StackError(f"{name} is being started or stopped by another process; nothing was changed")
            self._check_others(name)
            was_drained, limits = self._gate.is_drained(name), self._limits_of(replica)
            self._gate.drain(name)
            drained_s, undrained = self._wait_drained(name)
            ready_s, trouble = _started_anew(replica, profile)
            self._limits.restore(name, limits)
            if not was_drained:
                self._let_traffic_back(name)
        done = Restarted(name, replica.profile.read(), drained_s, undrained, ready_s)
        self._tell(What.RESTARTED, name, _account(done, self._drain_s))
        if trouble is not None:
            raise RefusedError(str(trouble), holds=done.profile) from trouble
        return done

    def _check_others(self, name: str) -> None:
        """Somebody must be there for the traffic."""
        if not any(self._gate.serves(other) for other in self._replicas if other != name):
            raise StackError(f"{name} is not restarted: the gateway has no other replica for its traffic")

    def _limits_of(self, replica: RestartableReplica) -> Mapping[str, int]:
        """Nothing is carried over from an engine that does not run."""
        if replica.service.process.running() is None:
            return {}
        return self._limits.read(replica.service.name)

    def _wait_drained(self, name: str) -> tuple[float, int]:
        """Seconds it took, and requests that were left when the time was over."""
        started_s = time.monotonic()
        while (sessions := self._gate.sessions(name)) > 0 and time.monotonic() < started_s + self._drain_s:
            time.sleep(POLL_S)
        return time.monotonic() - started_s, sessions

    def _let_traffic_back(self, name: str) -> None:
        """Not before the gateway sees it healthy may the next one be drained."""
        self._gate.ready(name)
        until_s = time.monotonic() + SEEN_WITHIN_S
        while not self._gate.serves(name):
            if time.monotonic() >= until_s:
                raise StackError(f"{name} serves again, but the gateway did not find it healthy in {SEEN_WITHIN_S:g} s")
            time.sleep(POLL_S)


def _started_anew(replica: RestartableReplica, profile: str | None) -> tuple[float, FlashVectorError | None]:
    """Start with `profile`, or else as before.

    Returns:
        seconds until it served, and what was wrong with `profile` where it serves as before.
    """
    before, name = replica.profile.read(), replica.service.name
    wanted = profile or before
    try:
        return _cycled(replica, wanted), None
    except FlashVectorError as error:
        if wanted == before:
            raise StackError(f"{error}\n{name} stays drained") from error
        trouble = error
    try:
        return _cycled(replica, before), trouble
    except FlashVectorError as error:
        raise StackError(f"{error}\n{name} stays drained; before, with profile {wanted}: {trouble}") from error


def _cycled(replica: RestartableReplica, profile: str) -> float:
    """Stop it and start it with `profile`; seconds until it served."""
    replica.service.stop()
    replica.profile.write(profile)
    replica.service.start()
    return replica.service.wait_ready()


def _account(done: Restarted, drain_s: float) -> str:
    left = f"{done.undrained} requests were not finished after {drain_s:g} s" if done.undrained else "all finished"
    return (
        f"{done.replica} restarted with profile {done.profile}: drained in {done.drained_s:.1f} s, {left}, "
        f"ready after {done.ready_s:.1f} s"
    )
