"""Whether this plugin fits the vLLM beside it. vLLM's scheduler interface is not public, so it is probed."""

import importlib
import os
from operator import attrgetter
from typing import Any

from packaging.version import InvalidVersion, Version

OLDEST, NEWEST = "0.23", "0.32"
"""First and last minor version whose scheduler the tests of this plugin were written against."""
OVERRIDE = "FLASHVECTOR_VLLM_UNTESTED"
"""Environment variable; 1 lets an untested version pass, the names are still probed."""

MODULE_NAMES = (
    ("vllm.v1.core.sched.scheduler", "Scheduler"),
    ("vllm.v1.core.sched.async_scheduler", "AsyncScheduler"),
    ("vllm.v1.core.kv_cache_utils", "get_max_concurrency_for_kv_cache_config"),
    ("vllm.v1.engine.core", "EngineCore"),
)
CLASS_NAMES = ("schedule", "_preempt_request", "reset_prefix_cache", "get_request_counts")
SCHEDULER_NAMES = (
    "max_num_running_reqs",
    "max_num_scheduled_tokens",
    "max_model_len",
    "num_spec_tokens",
    "running",
    "waiting",
    "vllm_config",
    "kv_cache_config.kv_cache_groups",
    "scheduler_config.max_num_seqs",
    "scheduler_config.policy",
    "scheduler_config.long_prefill_token_threshold",
    "scheduler_config.enable_chunked_prefill",
    "scheduler_config.disable_chunked_mm_input",
    "kv_cache_manager.usage",
    "kv_cache_manager.block_pool.num_gpu_blocks",
    "kv_cache_manager.block_pool.get_usage",
    "kv_cache_manager.block_pool.get_num_free_blocks",
    "kv_cache_manager.block_pool.get_new_blocks",
    "kv_cache_manager.block_pool.free_blocks",
)


class MisfitError(ImportError):
    """The plugin does not fit this vLLM; the text says what was expected and what was found."""


def check_version(found: str) -> None:
    """Accept tested versions of vLLM only.

    Args:
        found: vLLM's own version string.

    Raises:
        MisfitError: older than OLDEST, newer than NEWEST, or not a version.
    """
    if os.environ.get(OVERRIDE) == "1":
        return
    try:
        minor = Version(found).release[:2]
    except InvalidVersion:
        minor = (0, 0)
    if not Version(OLDEST).release[:2] <= minor <= Version(NEWEST).release[:2]:
        raise MisfitError(
            f"flashvector-vllm: expected vLLM {OLDEST} to {NEWEST}, found {found}; install a plugin made for it, "
            f"or set {OVERRIDE}=1 to try"
        )


def probe(found: str) -> None:
    """Check the version and the names this plugin builds on.

    Args:
        found: vLLM's own version string.

    Raises:
        MisfitError: with everything that is missing in one line.
    """
    check_version(found)
    missing = [f"{module}.{name}" for module, name in MODULE_NAMES if not _importable(module, name)]
    if not missing:
        scheduler = importlib.import_module(MODULE_NAMES[0][0]).Scheduler
        missing = [f"Scheduler.{name}" for name in CLASS_NAMES if not callable(getattr(scheduler, name, None))]
    _refuse(missing, found)


def probe_scheduler(scheduler: Any, found: str) -> None:
    """Check what a ready scheduler must hold.

    Raises:
        MisfitError: with every missing attribute in one line.
    """
    _refuse([f"scheduler.{path}" for path in SCHEDULER_NAMES if not _has(scheduler, path)], found)


def _importable(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def _has(thing: Any, path: str) -> bool:
    try:
        attrgetter(path)(thing)
    except AttributeError:
        return False
    return True


def _refuse(missing: list[str], found: str) -> None:
    if missing:
        raise MisfitError(
            f"flashvector-vllm: expected {', '.join(missing)} as in vLLM {OLDEST} to {NEWEST}, "
            f"not found in vLLM {found}"
        )
