import pytest
from fake_engine import Engine, Setup


def loaded(engine, **switches):
    one = engine(**switches)
    for _ in range(40):
        one.add(24, 30)
    one.steps(6)
    assert one.running == 16
    return one


def test_preempting_16_to_4_and_back_is_in_force_within_two_steps(engine):
    one = loaded(engine)
    one.set(running_request_cap=4, preempt_excess=True)
    one.steps(2)
    down = one.last(2)
    assert [step.running for step in down] == [4, 4]
    assert down[0].preempted == 12 and down[1].preempted == 0
    assert down[0].limits.running_request_cap == 4
    one.set(running_request_cap=16)
    one.steps(2)
    assert one.last()[0].running == 16
    one.run_dry()


def test_preempted_requests_are_named_to_the_worker(engine):
    one = loaded(engine)
    names = {request.request_id for request in one.scheduler.running[4:]}
    one.set(running_request_cap=4, preempt_excess=True)
    assert one.step().preempted_req_ids == names


def test_draining_admits_nobody_above_the_cap_from_the_next_step_on(engine):
    one = loaded(engine)
    one.set(running_request_cap=4)
    before = {request.request_id for request in one.scheduler.running}
    running = []
    while one.running > 4:
        one.step()
        assert one.running <= 4 or {request.request_id for request in one.scheduler.running} <= before
        running.append(one.running)
    assert running == sorted(running, reverse=True) and running[0] > 4
    one.steps(20)
    assert max(step.running for step in one.last(20)) == 4
    assert one.tuner.state()["settled"]
    one.set(running_request_cap=16)
    one.steps(2)
    assert one.running == 16
    one.run_dry()


def test_while_draining_a_small_step_still_reaches_every_running_request(engine):
    one = loaded(engine)
    one.set(running_request_cap=4, tokens_per_step=4)
    scheduled = one.step()
    assert len(scheduled.num_scheduled_tokens) == 16
    assert one.last()[0].limits.tokens_per_step == 16
    one.run_dry()
    assert one.tuner.state()["in_force"]["tokens_per_step"] == 4


def test_preempting_then_raising_before_the_next_step_preempts_nobody(engine):
    one = loaded(engine)
    one.set(running_request_cap=4, preempt_excess=True)
    one.set(running_request_cap=16)
    one.step()
    assert one.running == 16 and one.last()[0].preempted == 0
    one.run_dry()


def test_another_change_before_the_next_step_does_not_forget_the_preemption(engine):
    one = loaded(engine)
    one.set(running_request_cap=4, preempt_excess=True)
    one.set(tokens_per_step=100)
    one.step()
    assert one.running == 4
    one.run_dry()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_with_priorities_the_least_urgent_are_preempted(model, asynchronous):
    one = Engine(Setup(policy="priority"), model, asynchronous, int(asynchronous))
    for priority in (1, 0):  # vLLM runs the lowest number first
        for _ in range(8):
            one.add(20, 20, priority=priority)
        one.steps(2)
    assert [request.priority for request in one.scheduler.running] == [1] * 8 + [0] * 8
    one.set(running_request_cap=8, preempt_excess=True)
    one.step()
    assert {request.priority for request in one.scheduler.running} == {0}
    one.run_dry()


def test_a_cap_above_the_start_is_cut_to_it(engine):
    one = loaded(engine)
    answer = one.set(running_request_cap=99)
    assert answer["limits"]["running_request_cap"] == 16
    assert answer["adjusted"]["running_request_cap"].startswith("asked 99, set to 16")
    one.run_dry()
