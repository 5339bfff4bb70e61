"""The composition root: settings in, a session out. Beside harness.execution the only place that knows a control."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from uuid import uuid4

from agent.chat import Chat
from agent.desk import Desk
from agent.llm_planner import LlmPlanner
from agent.model import chat_model
from agent.planner import Planner
from agent.search_planner import SearchPlanner
from agent.session import Score, Session
from agent.settings import Settings
from agent.simulated_run import SimulatedRun
from agent.usage import Limits
from harness.baseline import Baseline
from harness.execution import Executor
from harness.forecast.forecaster import Forecaster
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.store import open_store
from harness.lease_keeper import LeaseKeeper
from harness.memory import Memory
from harness.mode import Mode
from harness.policy import Policy
from harness.shadow.earned import Earned
from harness.shadow.record import ShadowRecord
from harness.shadow.waiting import WaitingChoices
from stack.catalogue import SETTINGS
from stack.clock import Clock
from stack.control import StackControl
from stack.errors import InputError
from stack.local.admission import Promise
from stack.local.live import LiveStack
from stack.reader import StackReader
from stack.recorded import replay_of
from stack.redaction import redact_logs
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.step_times import usual_precision

NO_LLM = "search, no LLM configured"
REPLAYED = "replayed"


def simulated_session(
    settings: Settings,
    *,
    traffic: str = "steady",
    load: float | None = None,
    rate_scale: float | None = None,
    faults: tuple[str, ...] = (),
    model: str = FleetSpec.model,
    gpu: str = FleetSpec.gpu,
    tensor_parallel: int = FleetSpec.tensor_parallel,
    precision: str | None = None,
    kv_blocks: int | None = None,
    replicas: int = FleetSpec.replicas,
    minutes: float = 30.0,
    seed: int = 0,
) -> Session:
    """A session on the simulated stack; see agent.simulated_run.SimulatedRun for the arguments.

    A mistake costs nothing there, so every setting is enabled unless `settings` or a policy file names some.

    Raises:
        InputError: something in the settings or arguments is unusable.
    """
    policy = settings.policy()
    if settings.enabled is None and settings.policy_path is None:
        policy = policy.model_copy(update={"enabled": frozenset(setting.name for setting in SETTINGS)})
    slo, plan = policy.slo, policy.verification
    run = SimulatedRun(
        traffic=traffic,
        load=load,
        rate_scale=rate_scale,
        faults=faults,
        fleet=FleetSpec(
            model=model,
            gpu=gpu,
            tensor_parallel=tensor_parallel,
            precision=precision or usual_precision(model),
            kv_blocks=kv_blocks,
            replicas=replicas,
            ttft_limit_s=slo.ttft_s,
            ttft_limit_s_per_token=slo.ttft_s_per_prompt_token,
        ),
        minutes=minutes,
        seed=seed,
        slo=slo,
        tail_s=plan.settle_s + plan.longest_s + plan.blind_grace_s,
    )
    stack = run.stack()
    # Virtual time begins anew with every run, so one run's past must not be another's.
    name = f"simulated-{uuid4().hex[:12]}"
    desk = _desk(settings, policy, stack.reader, stack.control, stack.clock, name=name, simulated=True)
    return _session(settings, desk, score=lambda: run.score(stack.simulation))


def recorded_session(settings: Settings, folder: Path) -> Session:
    """A session that replays an incident folder, in shadow mode: nothing can be changed in the past.

    Where `settings` describe a stack, its decisions count for that stack's shadow record. Its journal has a name of its
    own, so that nothing here is taken for what the stack itself went through.

    Raises:
        InputError: the folder is no usable recording.
    """
    replay = replay_of(folder, at_start=True)
    shadow = settings.looking()
    recorded_from = None if settings.stack is None else settings.stack.name
    desk = _desk(
        shadow,
        settings.policy(),
        replay.reader,
        replay.control,
        replay.clock,
        name=REPLAYED if recorded_from is None else f"{REPLAYED} {recorded_from}",
        counts_for=recorded_from,
    )
    return _session(shadow, desk, lasts_s=replay.end_s - replay.start_s)


@contextmanager
def live_session(settings: Settings) -> Iterator[Session]:
    """A session on the local stack that `settings` describe, until the block ends.

    In shadow mode the process holds no way to write. One session at a time looks after a stack.

    Raises:
        InputError: the settings describe no stack, or another session looks after it.
        UnreachableError: a change is in flight from before, and the stack does not answer.
    """
    if settings.stack is None:
        raise InputError("expected a table [stack] in the configuration file, which describes the local stack")
    policy, writes = settings.policy(), settings.mode is not Mode.SHADOW
    promise = Promise(policy.slo.ttft_s, policy.slo.ttft_s_per_prompt_token)
    with LiveStack(settings.stack, writes=writes, promise=promise) as stack:
        desk = _desk(settings, policy, stack.reader, stack.control, stack.clock, name=settings.stack.name)
        with _kept(desk, reachable=settings.store is not None):
            yield _session(settings, desk)


def _kept(desk: Desk, *, reachable: bool) -> AbstractContextManager[object]:
    """What keeps the session's lease; nobody can ask for one whose store lies in this process, or take it."""
    if not desk.journal.leads or not reachable:
        return nullcontext()
    return LeaseKeeper(desk.journal, desk.executor, desk.clock)


def _desk(
    settings: Settings,
    policy: Policy,
    reader: StackReader,
    control: StackControl,
    clock: Clock,
    *,
    name: str,
    simulated: bool = False,
    counts_for: str | None = None,
) -> Desk:
    redact_logs()
    store = open_store(settings.store)
    # What a shadow session cannot take it cannot use: without a lease no permit is ever committed.
    lease = None if settings.mode is Mode.SHADOW else Lease.take(store, name)
    journal = Journal(store, stack=name, lease=lease)
    window_s, mode = settings.window_s, settings.mode
    record = ShadowRecord(store, stack=counts_for or name, planner=settings.planner)
    forecaster = Forecaster(policy.slo, [(one.action, one.verification) for one in journal.ended()])
    asks = mode is Mode.AUTO and not simulated
    earned: Callable[[], frozenset[str]] = Earned(record, journal, policy) if asks else frozenset

    return Desk(
        reader=reader,
        clock=clock,
        journal=journal,
        executor=Executor(
            control, journal, policy, clock, reader, window_s=window_s, simulated=simulated, earned=earned
        ),
        forecaster=forecaster,
        baseline=Baseline(),
        memory=Memory(store),
        policy=policy,
        mode=mode,
        simulated=simulated,
        window_s=window_s,
        waiting_choices=WaitingChoices(record, forecaster, policy.slo) if mode is Mode.SHADOW else None,
    )


def _session(settings: Settings, desk: Desk, *, score: Score | None = None, lasts_s: float = math.inf) -> Session:
    limits = Limits(settings.llm_calls, settings.llm_seconds, settings.llm_tokens)
    speaker = "search" if settings.has_llm else NO_LLM
    planner: Planner = SearchPlanner(speaker)
    must_call = settings.llm_tool_choice == "required"
    if settings.planner == "llm":
        planner = LlmPlanner(chat_model(settings), "llm", limits, settings.llm_timeout_s, must_call)
    model = chat_model(settings) if settings.has_llm else None
    chat = Chat(speaker, model, limits, settings.llm_timeout_s, must_call)
    return Session(desk, planner, chat, cycle_s=settings.cycle_s, score=score, lasts_s=lasts_s)
