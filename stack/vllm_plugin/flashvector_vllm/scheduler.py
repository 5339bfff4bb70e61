"""vLLM's schedulers with limits that change between two engine steps.

    vllm serve MODEL --scheduler-cls flashvector_vllm.scheduler.TunableScheduler        (without async scheduling: CPU)
    vllm serve MODEL --scheduler-cls flashvector_vllm.scheduler.TunableAsyncScheduler   (with it: vLLM's default on GPU)

Importing this module refuses with a MisfitError where vLLM does not fit.
"""

from typing import Any

import vllm

from flashvector_vllm.fit import probe, probe_scheduler

probe(vllm.__version__)

from vllm.v1.core.sched.async_scheduler import AsyncScheduler  # noqa: E402 - only after the probe
from vllm.v1.core.sched.scheduler import Scheduler  # noqa: E402

from flashvector_vllm.tuner import Tuner  # noqa: E402


class TunableMixin:
    """Goes before a scheduler class of vLLM; `tuner` holds the limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        probe_scheduler(self, vllm.__version__)
        self.tuner = Tuner(self, vllm.__version__)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """One step of vLLM's scheduler under the limits in force. Takes what the installed version passes."""
        self.tuner.before_step()
        output = super().schedule(*args, **kwargs)  # type: ignore[misc]
        self.tuner.after_step(output)
        return output

    def reset_prefix_cache(self, *args: Any, **kwargs: Any) -> bool:
        """As vLLM's, which refuses while any block is taken: held ones are given back until the next step."""
        self.tuner.release_blocks()
        return bool(super().reset_prefix_cache(*args, **kwargs))  # type: ignore[misc]


class TunableScheduler(TunableMixin, Scheduler):
    """The synchronous scheduler with changeable limits."""


class TunableAsyncScheduler(TunableMixin, AsyncScheduler):
    """The asynchronous scheduler with changeable limits."""
