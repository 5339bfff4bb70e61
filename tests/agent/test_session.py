"""The loop end to end on the simulated stack, in process and in virtual time."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import pytest
from pydantic import Field

from agent.events import AnswerText, Proposed, Speaker
from agent.settings import Settings
from agent.wiring import simulated_session
from harness.action import Action
from harness.approval import Approve, Edit, Reject
from harness.errors import TransitionError
from harness.journal.record import State
from harness.mode import Mode
from harness.outcome import Ending, Measured
from skills.skill import SkillContext, skill
from stack.errors import InputError
from stack.layer import Layer
from stack.snapshot import FLEET


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def session(mode=Mode.APPROVE, *, faults=(), minutes=20.0, load=0.5, **more):
    return simulated_session(
        Settings.load(mode=mode, **more), faults=tuple(faults), minutes=minutes, load=load, replicas=3, seed=3
    )


def live(talk, minutes, decide=None):
    reports = []
    while talk.elapsed_s < minutes * 60:
        reports.append(talk.cycle())
        for pending in talk.pending() if decide else ():
            decide(talk, pending)
    return reports


def said(events):
    return "".join(event.text for event in events if isinstance(event, AnswerText))


def test_healthy_traffic_is_left_alone():
    talk = session(Mode.AUTO)
    reports = live(talk, 12)
    assert talk.finish() == ()
    assert all(report.proposal is None for report in reports)
    assert reports[-1].diagnosis.healthy, reports[-1].diagnosis.problems


def test_a_bad_setting_is_found_mended_proved_and_remembered():
    talk = session(Mode.AUTO, faults=["kv_pool_small@330"], minutes=30.0)
    live(talk, 16)
    talk.finish()
    first = talk.episodes()[0]
    assert (first.action.setting, first.action.layer) == ("usable_kv_blocks_ratio", Layer.CACHE)
    assert first.action.after > first.action.before
    assert first.outcome.ending is Ending.KEPT, first.end_reason
    assert first.applied_s - talk.started_s > 330
    assert first.holds == first.action.after
    better = first.verification.metrics["slo_share"]
    assert better["after"] > better["before"] + 0.2
    assert "usable_kv_blocks_ratio" in said(talk.ask("what did you change?"))


def test_a_slow_replica_gets_less_traffic_on_proof():
    talk = session(Mode.AUTO, faults=["slow_replica@330"], minutes=30.0, load=0.6)
    live(talk, 16)
    talk.finish()
    kept = [record for record in talk.episodes() if record.outcome.ending is Ending.KEPT]
    assert kept and kept[0].action.layer is Layer.ROUTING
    assert all(record.outcome.ending in (Ending.KEPT, Ending.ROLLED_BACK) for record in talk.episodes())


def test_hardware_that_became_slower_is_told_as_not_tunable_for_as_long_as_it_lasts():
    talk = session(Mode.AUTO, faults=["gpu_throttling@900"], minutes=40.0, load=0.6)
    reports = live(talk, 30)
    assert talk.finish() == ()
    first = reports[-1].diagnosis.problems[0]
    assert (first.cause, first.tunable) == ("fleet_slowdown", False)
    assert "not tunable" in reports[-1].plan.reason and "GPU clocks" in first.advice


@skill(effect="propose", layer=Layer.BATCHING, setting="running_request_cap")
def starve_the_batch(ctx: SkillContext, cap: Annotated[int, Field(ge=1, le=8)]) -> Action:
    """Propose a cap that is far too small, to see it undone.

    Args:
        cap: running requests allowed on every replica.
    """
    return Action(
        setting="running_request_cap",
        target=FLEET,
        before=ctx.snapshot.settings["running_request_cap"]["replica-0"],
        after=float(cap),
        cause="a_test",
        layer=Layer.BATCHING,
        reason="to see it undone",
    )


def test_a_change_that_hurts_is_undone_and_the_stack_holds_its_former_value(tmp_path):
    lenient = tmp_path / "policy.toml"
    lenient.write_text("[health]\nlimit_left_min_ratio = 0.01\n")  # the shipped one lets no such limit through
    settings = Settings.load(mode=Mode.APPROVE, policy_path=lenient)
    simulated = simulated_session(settings, minutes=40.0, load=0.6, replicas=3, seed=3)
    live(simulated, 10)
    snapshot = simulated.cycle().snapshot
    action = starve_the_batch(SkillContext(snapshot=snapshot, enabled=frozenset({"running_request_cap"})), cap=4)
    proposed = simulated.propose(action)
    simulated.decide(proposed.approval_id, Approve("ann", proposed.digest))
    caps = []
    while not simulated.episodes():
        caps.append(simulated.cycle().snapshot.settings["running_request_cap"])
        assert simulated.elapsed_s < 1800
    former = dict.fromkeys(("replica-0", "replica-1", "replica-2"), action.before)
    assert dict.fromkeys(former, 4.0) in caps
    (record,) = simulated.episodes()
    assert record.outcome.ending is Ending.ROLLED_BACK, record.end_reason
    assert record.verification.measured is Measured.WORSE
    assert simulated.cycle().snapshot.settings["running_request_cap"] == former


def test_nothing_is_written_in_shadow():
    talk = session(Mode.SHADOW, faults=["cap_too_small@330"])
    reports = live(talk, 10)
    proposals = [report.proposal for report in reports if report.proposal is not None]
    assert proposals and all(record.state is State.SHADOWED for record in proposals)
    assert talk.episodes() == ()


def test_an_approved_proposal_is_carried_out_and_a_second_answer_is_refused():
    answered = []

    def approve(talk, pending):
        assert talk.decide(pending.id, Approve("ann", pending.digest)).state is State.APPROVED
        with pytest.raises(TransitionError):
            talk.decide(pending.id, Reject("bob"))
        answered.append(pending.id)

    talk = session(faults=["cap_too_small@330"])
    reports = live(talk, 10, approve)
    assert answered
    settling = [r for report in reports for r in report.changed if r.id == answered[0]]
    assert settling and settling[0].decided_by == "ann"


def test_a_rejected_proposal_changes_nothing():
    talk = session(faults=["cap_too_small@330"])
    live(talk, 10, lambda t, pending: t.decide(pending.id, Reject("ann", "not now")))
    assert talk.episodes() == ()


@pytest.mark.parametrize(
    ("setting", "expiry_s"), [("routing_weight", 600.0), ("worker_generation", 300.0), ("gpu_fan", 0.0)]
)
def test_how_long_a_person_has_to_decide_depends_on_the_class(setting, expiry_s):
    talk = session()
    talk.cycle()
    begun = datetime.now(UTC)
    about = {"cause": "a_test", "layer": Layer.MEMORY, "reason": "to see it wait", "requested_by": "ann"}
    talk.propose(Action(setting=setting, target="replica-0", before=0.0, after=1.0, **about))
    assert expiry_s <= (talk.records()[-1].expires_at - begun).total_seconds() < expiry_s + 60


def test_an_edit_goes_back_to_the_gate():
    seen = []

    def edit(talk, pending):
        if seen:
            talk.decide(pending.id, Reject("ann"))
            return
        seen.append(talk.decide(pending.id, Edit("ann", pending.digest, 100_000.0)))

    talk = session(faults=["cap_too_small@330"])
    live(talk, 10, edit)
    assert seen[0].state is State.DENIED
    assert any(hit.rule == "within_bounds" for hit in seen[0].verdict.hits)


def test_no_plan_is_made_while_a_change_settles():
    talk = session(Mode.AUTO, faults=["cap_too_small@330"])
    reports = live(talk, 11)
    settling = [report for report in reports if report.stage == "settling"]
    assert settling
    assert all(report.plan is None for report in settling if report.proposal is None and not report.ended)


def test_a_planner_that_is_refused_again_and_again_is_not_asked_for_a_while():
    talk = session(Mode.AUTO)
    snapshot = live(talk, 2)[-1].snapshot
    assert talk.cycle().plan is not None
    context = SkillContext(snapshot=snapshot, enabled=frozenset({"running_request_cap"}))
    for _ in range(30):
        assert talk.propose(replace(starve_the_batch(context, cap=1), after=5000.0)).approval_id is None
    assert talk.cycle().plan is None


def test_stop_undoes_what_is_in_flight_and_halts_the_loop():
    talk = session(Mode.AUTO, faults=["cap_too_small@330"])
    while not any(record.is_open for record in talk.cycle().changed):
        assert talk.elapsed_s < 900
    ended = talk.stop("ann")
    assert [record.state for record in ended] == [State.ROLLED_BACK]
    assert live(talk, talk.elapsed_s / 60 + 1)[-1].stage == "frozen"


def test_without_a_model_the_chat_answers_from_what_was_measured():
    talk = session(faults=["cap_too_small@300"])
    live(talk, 6)
    events = list(talk.ask("why is P99 high?"))
    assert events[0] == Speaker("search, no LLM configured")
    assert "batching" in said(events) and "TTFT" in said(events)
    assert "running_request_cap" in said(talk.ask("what is the running request cap?"))
    what_if = said(talk.ask("what would routing_weight 90 on replica-1 do?"))
    assert "Predicted for the next" in what_if and "Nothing was changed" in what_if
    assert talk.pending() == () or all(p.action.setting != "routing_weight" for p in talk.pending())


def test_a_change_asked_for_in_the_chat_waits_for_an_approval_in_auto_mode_too():
    talk = session(Mode.AUTO)
    live(talk, 10)
    events = list(talk.ask("set deadline_shedding_ratio to 0.8", by="ann"))
    proposed = next(event for event in events if isinstance(event, Proposed))
    if proposed.approval_id is None:
        assert proposed.verdict.hits
    else:
        assert talk.pending()[0].action.requested_by == "ann"
        assert talk.pending()[0].action.target == FLEET


def test_the_same_seed_gives_the_same_episodes():
    def run():
        talk = session(Mode.AUTO, faults=["cap_too_small@330"])
        live(talk, 11)
        talk.finish()
        return [(r.action, r.state, r.verification) for r in talk.episodes()], talk.score()

    assert run() == run()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"faults": ("gremlins@3",)}, "gremlins"),
        ({"traffic": "absent.csv"}, "absent.csv"),
        ({"load": 0.5, "rate_scale": 2.0}, "load and rate_scale"),
        ({"load": -1.0}, "load"),
        ({"model": "gpt-9"}, "gpt-9"),
    ],
)
def test_unusable_arguments_are_one_line(arguments, says):
    with pytest.raises(InputError, match=says) as caught:
        simulated_session(Settings.load(), minutes=1.0, **arguments)
    assert "\n" not in str(caught.value)
