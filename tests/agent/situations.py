"""A small, fixed situation: three replicas, one of them with a queue behind a cap while KV blocks are free."""

from agent.persistence import Persistence
from agent.planner import PlanContext
from harness.diagnosis import Diagnosis, Finding
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import RuleResult, Ruling, Verdict
from skills.skill import SkillContext
from stack.layer import Layer
from stack.snapshot import Fact, Missing, Signal, Snapshot

ALLOWED = Verdict((RuleResult("authority", Ruling.ALLOW, "auto mode"),))


def snapshot(replica: str = "replica-2") -> Snapshot:
    def facts(running: float, waiting: float, ttft_s: float) -> dict[Signal, Fact]:
        return {
            Signal.RUNNING: Fact(running, start=running, peak=running, age_s=1.0, trend_per_min=0.0),
            Signal.WAITING: Fact(waiting, start=waiting / 2, peak=waiting, age_s=1.0, trend_per_min=waiting / 2),
            Signal.KV_USAGE_RATIO: Fact(0.3, start=0.3, peak=0.31, age_s=1.0, trend_per_min=0.0),
            Signal.FINISHED: Fact(200.0, start=200.0, age_s=1.0),
            Signal.ARRIVED: Fact(220.0, start=210.0, age_s=1.0),
            Signal.TTFT_P99_S: Fact(ttft_s, age_s=1.0),
            Signal.ITL_P99_S: Fact(0.02, age_s=1.0),
            Signal.PROMPT_TOKENS_MEAN: Fact(900.0, age_s=1.0),
        }

    names = ("replica-0", "replica-1", replica)
    replicas = {name: facts(16.0, 32.0 if name == replica else 0.0, 4.0) for name in names}
    held = dict.fromkeys(names, 16.0)
    return Snapshot(
        time_s=1_700_000_000.0,
        window_s=60.0,
        scrapes=5,
        replicas=replicas,
        fleet=facts(48.0, 32.0, 4.0),
        settings={"running_request_cap": held, "routing_weight": dict.fromkeys(names, 100.0)},
    )


def diagnosis(replica: str = "replica-2", severity: float = 0.8) -> Diagnosis:
    finding = Finding(
        layer=Layer.BATCHING,
        cause="cap_too_small",
        claim=f"{replica} runs 16 of at most 16 requests while 32 wait and KV use is 30%.",
        severity=severity,
        confidence=0.9,
        tunable=True,
        target=replica,
        evidence={"running_requests": 16.0, "waiting_requests": 32.0, "kv_usage_ratio": 0.3},
    )
    missing = Missing("device_free_bytes", replica, "no GPU metrics", "memory pressure on the device")
    return Diagnosis((finding,), (missing,), 60.0, 1_700_000_000.0)


def lasting(found: Diagnosis) -> Persistence:
    return Persistence().after(found).after(found)


def plan_context(replica: str = "replica-2", **changes) -> PlanContext:
    seen, found = snapshot(replica), diagnosis(replica)
    enabled = frozenset({"running_request_cap", "routing_weight"})
    fields = {
        "diagnosis": found,
        "skills": SkillContext(snapshot=seen, enabled=enabled),
        "check": lambda _action: ALLOWED,
        "forecast": lambda _action: None,
        "persistence": lasting(found),
        "policy": Policy.load(),
        "mode": Mode.APPROVE,
    }
    return PlanContext(**(fields | changes))
