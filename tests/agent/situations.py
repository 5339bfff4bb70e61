"""A small, fixed situation: three replicas with queues behind their caps while KV blocks are free."""

from agent.persistence import CYCLES_NEEDED, Persistence
from agent.planner import PlanContext
from harness.diagnosis import Diagnosis
from harness.mode import Mode
from harness.policy import Policy
from harness.verdict import RuleResult, Ruling, Verdict
from skills.diagnose import diagnose
from skills.skill import SkillContext
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
    replicas = {name: facts(16.0, 32.0, 4.0) for name in names}
    held = dict.fromkeys(names, 16.0)
    return Snapshot(
        time_s=1_700_000_000.0,
        window_s=60.0,
        scrapes=5,
        replicas=replicas,
        fleet=facts(48.0, 96.0, 4.0),
        missing=(Missing("device_free_bytes", replica, "no GPU metrics", "memory pressure on the device"),),
        settings={"running_request_cap": held, "routing_weight": dict.fromkeys(names, 100.0)},
    )


def lasting(found: Diagnosis) -> Persistence:
    persistence = Persistence()
    for _ in range(CYCLES_NEEDED):
        persistence = persistence.after(found)
    return persistence


def plan_context(replica: str = "replica-2", **changes) -> PlanContext:
    seen = snapshot(replica)
    skills = SkillContext(snapshot=seen, enabled=frozenset({"running_request_cap", "routing_weight"}))
    found = diagnose(seen, skills)
    fields = {
        "diagnosis": found,
        "skills": skills,
        "check": lambda _action: ALLOWED,
        "forecast": lambda _action: None,
        "persistence": lasting(found),
        "policy": Policy.load(),
        "mode": Mode.APPROVE,
    }
    return PlanContext(**(fields | changes))
