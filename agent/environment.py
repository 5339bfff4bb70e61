"""Where and under which traffic the stack lives, as memory compares it."""

from harness.memory import Environment
from stack.snapshot import Signal, Snapshot


def environment_of(snapshot: Snapshot) -> Environment:
    """The environment `snapshot` shows; what the engines do not state about themselves is empty."""
    return Environment(
        model=_stated(snapshot, "model_name"),
        gpu=_stated(snapshot, "gpu"),
        engine_version=_stated(snapshot, "version"),
        replicas=len(snapshot.replicas),
        requests_per_s=snapshot.per_s(Signal.ARRIVED),
        prompt_tokens=snapshot.value(Signal.PROMPT_TOKENS_MEAN),
        output_tokens=snapshot.value(Signal.OUTPUT_TOKENS_MEAN),
    )


def _stated(snapshot: Snapshot, name: str) -> str:
    values = {str(stated[name]) for stated in snapshot.configuration.values() if name in stated}
    return ", ".join(sorted(values))
