"""vLLM's general plugin: gives EngineCore two methods that the API server can call by name.

vLLM loads it in the API server, the engine and the workers. It changes nothing else, and where vLLM does not fit it
says so once and leaves vLLM alone.
"""

import logging
from typing import Any

from flashvector_vllm.fit import MisfitError, probe

SET_LIMITS, GET_STATE = "flashvector_set_limits", "flashvector_get_state"
"""Names of the methods on EngineCore."""
NOT_TUNABLE = "not_tunable"
"""Key of an answer when the engine runs another scheduler."""

logger = logging.getLogger("vllm.flashvector")


def register() -> None:
    """Add the methods; called by vLLM, maybe several times."""
    import vllm

    try:
        probe(vllm.__version__)
    except MisfitError as error:
        logger.error("%s; vLLM goes on without it", error)
        return
    from vllm.v1.engine.core import EngineCore

    setattr(EngineCore, SET_LIMITS, _set_limits)
    setattr(EngineCore, GET_STATE, _get_state)


def _set_limits(engine: Any, document: Any) -> dict[str, Any]:
    tuner = getattr(engine.scheduler, "tuner", None)
    return tuner.apply(document) if tuner else _other_scheduler(engine)


def _get_state(engine: Any, steps: int = 0, since: int = -1) -> dict[str, Any]:
    tuner = getattr(engine.scheduler, "tuner", None)
    return tuner.state(steps, since) if tuner else _other_scheduler(engine)


def _other_scheduler(engine: Any) -> dict[str, Any]:
    found = f"{type(engine.scheduler).__module__}.{type(engine.scheduler).__qualname__}"
    expected = "flashvector_vllm.scheduler.TunableScheduler or TunableAsyncScheduler"
    return {NOT_TUNABLE: f"expected --scheduler-cls {expected}, found {found}"}
