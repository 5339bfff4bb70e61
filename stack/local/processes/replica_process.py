"""A replica as a managed process: how its engine is called, and when it serves."""

from functools import partial
from pathlib import Path

from stack.local.configuration import LocalStack, Replica
from stack.local.processes.process import ManagedProcess
from stack.local.processes.profile import ProfileFile
from stack.local.processes.program import program
from stack.local.processes.readiness import completion_trouble
from stack.local.processes.service import Kind, Launch, Service

GRACE_S = 20.0
"""vLLM ends its engine and workers within seconds of SIGTERM; one that takes longer is stuck."""


def replica_service(stack: LocalStack, replica: Replica) -> Service:
    """The service that runs `replica`."""
    return Service(
        name=replica.name,
        kind=Kind.REPLICA,
        urls=(replica.url,),
        launch=partial(engine_launch, stack, replica),
        trouble=partial(completion_trouble, replica.url, stack.engine.model, stack.engine_access(writes=False)),
        process=ManagedProcess(replica.name, stack.run_folder),
        ready_s=stack.engine.ready_s,
        grace_s=GRACE_S,
    )


def engine_launch(stack: LocalStack, replica: Replica) -> Launch:
    """What starts the engine, with the profile in force.

    Raises:
        InputError: the program is missing, or the profile.
    """
    engine = stack.engine
    profile = profile_file(stack, replica.name).read()
    command = (
        program(engine.command[0]),
        *engine.command[1:],
        *engine.arguments,
        *replica.arguments,
        *engine.profiles[profile],
        *("--host", replica.host, "--port", str(replica.port)),
    )
    tokens = {"FLASHVECTOR_VLLM_TOKEN": stack.engine_token, "FLASHVECTOR_VLLM_READ_TOKEN": stack.engine_read_token}
    given = {name: token.get_secret_value() for name, token in tokens.items() if token.get_secret_value()}
    return Launch(command, {**engine.environment, **replica.environment, **given})


def profile_file(stack: LocalStack, replica: str) -> ProfileFile:
    """Where the profile of `replica` is kept."""
    return ProfileFile(Path(stack.run_folder), replica, stack.engine)
