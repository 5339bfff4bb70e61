"""An envelope over the routing weights of a scripted stack, and the loop around it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripted_stack import weight_action

from harness.approval import Approve
from harness.envelope.envelope import Envelope, Guard, Range
from harness.envelope.record import EnvelopeRecord
from harness.gate.envelope_check import check_envelope
from harness.mode import Mode

if TYPE_CHECKING:
    from conftest import Bench

WEIGHTS = Range(setting="routing_weight", low=40.0, high=120.0, step=10.0, every_s=5.0, back_after_s=60.0)
LASTS_S = 1200.0
WATCHED_S = 900.0


def weights(*guards: Guard, lasts_s: float = LASTS_S) -> Envelope:
    return Envelope(ranges=(WEIGHTS,), lasts_s=lasts_s, guards=guards, reason="keep replicas even", requested_by="olga")


@dataclass
class Enveloped:
    """A bench whose stack has been watched, and an envelope on it."""

    bench: "Bench"

    def propose(self, envelope: Envelope | None = None, mode: Mode = Mode.APPROVE) -> EnvelopeRecord:
        bench, envelope = self.bench, envelope or weights()
        now_s, history = bench.clock.now_s(), bench.executor.history()
        seen = bench.stack.snapshot(60.0)
        verdict = check_envelope(envelope, seen, history, bench.policy, mode=mode, now_s=now_s)
        return bench.journal.envelopes.propose(envelope, verdict, mode=mode, now_s=now_s)

    def approve(self, record: EnvelopeRecord, by: str = "olga") -> EnvelopeRecord:
        now_s = self.bench.clock.now_s()
        return self.bench.journal.envelopes.decide(record.id, Approve(by, record.proposal.digest), now_s=now_s)

    def open(self, envelope: Envelope | None = None) -> EnvelopeRecord:
        record = self.approve(self.propose(envelope))
        return self.bench.executor.open_envelope(record.id, mode=Mode.APPROVE)

    def move(self, before: float, after: float, target: str = "r0", wait_s: float = 5.0) -> str | None:
        self.bench.clock.sleep(wait_s)
        return self.bench.executor.move(weight_action(before, after, target), mode=Mode.APPROVE)

    def watch(self, seconds: float, cycle_s: float = 20.0, *, blind: bool = False) -> EnvelopeRecord | None:
        """Cycles until one ends the envelope."""
        bench = self.bench
        for _ in range(int(seconds / cycle_s)):
            bench.clock.sleep(cycle_s)
            seen = None if blind else bench.stack.snapshot(60.0)
            bench.executor.supervise(seen)
            ended = bench.executor.watch_envelope(seen)
            if ended is not None:
                return ended
        return None

    def helps(self, factor: float) -> None:
        """Token times are `factor` times as long while r0 has less weight than 100."""

        def itl_s(values, time_s, name):
            return 0.02 * (factor if values["routing_weight", "r0"] < 100 else 1.0)

        self.bench.stack.itl_s = itl_s

    def holds(self, target: str = "r0") -> object:
        return self.bench.stack.values["routing_weight", target]
