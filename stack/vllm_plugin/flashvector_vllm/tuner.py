"""Holds one scheduler's limits and enforces them before each step; never raises into the engine's loop."""

import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from flashvector_vllm.change import BadFieldsError, Change, parse_change
from flashvector_vllm.held_blocks import HeldBlocks
from flashvector_vllm.levers import Levers, bounds_of, preempt_above
from flashvector_vllm.limits import LIMIT_NAMES, Limits
from flashvector_vllm.steps import Step, StepRecord, rows

CHANGES_KEPT = 20
MOST_STEPS = 1000
"""Steps given in one answer."""


class Tuner:
    """The limits of one scheduler. Runs in the engine's own thread, between two steps, so it needs no lock.

    Args:
        scheduler: vLLM's scheduler, as started and probed.
        version: vLLM's version, for answers.
    """

    def __init__(self, scheduler: Any, version: str) -> None:
        self._scheduler, self._version = scheduler, version
        self._bounds = bounds_of(scheduler)
        self._levers = Levers(scheduler, self._bounds)
        self._held = HeldBlocks(scheduler.kv_cache_manager.block_pool)
        self._limits = self._in_force = self._bounds.boot
        self._preempt_asked = False
        self._preempted: list[str] = []
        self._step = 0
        self._steps, self._changes = StepRecord(), deque[dict[str, Any]](maxlen=CHANGES_KEPT)
        self._failure: dict[str, Any] | None = None
        self._stopped = False

    def apply(self, document: Any) -> dict[str, Any]:
        """Change limits; all of it or, with a bad field, nothing.

        Args:
            document: the change as plain data, see `parse_change`.

        Returns:
            plain data: `ok`, `errors` by field, `adjusted` by field (what was fitted to the bounds), and the state.
        """
        try:
            change = parse_change(document)
            errors = {name: f"can't be changed: {self._bounds.unsupported[name]}" for name in self._closed(change)}
        except BadFieldsError as error:
            errors = error.errors
        if errors:
            return {"ok": False, "errors": errors, "adjusted": {}, **self.state()}
        asked = replace(self._bounds.boot if change.reset else self._limits, **change.values)
        self._limits = self._bounds.fitted(asked)
        self._preempt_asked = change.preempt_excess or self._preempt_asked
        self._stopped = False
        self._guarded("between steps", self._put_in_force)
        adjusted = self._adjusted(asked)
        self._changes.append({"time_s": time.time(), "step": self._step, "asked": document, "adjusted": adjusted})
        errors = {"engine": self._failure["what"]} if self._stopped and self._failure else {}
        return {"ok": not errors, "errors": errors, "adjusted": adjusted, **self.state()}

    def state(self, steps: int = 0, since: int = -1) -> dict[str, Any]:
        """Everything that can be read, as plain data.

        Args:
            steps: how many steps of the record to add, at most MOST_STEPS.
            since: add the first ones after this step; negative: the newest ones.
        """
        state = {"vllm_version": self._version, "step": self._step, **self._engine_state(), **self._limit_state()}
        if steps:
            count = min(steps, MOST_STEPS)
            state["steps"] = rows(self._steps.last(count) if since < 0 else self._steps.after(since, count))
        return state

    def _engine_state(self) -> dict[str, Any]:
        running, waiting = self._scheduler.get_request_counts()
        held, wanted = len(self._held), self._wanted_held()
        drained = running <= self._limits.running_request_cap
        return {
            "running": running,
            "waiting": waiting,
            "held_blocks": held,
            "held_blocks_wanted": wanted,
            "free_blocks": self._scheduler.kv_cache_manager.block_pool.get_num_free_blocks(),
            "settled": drained and held == wanted and not self._stopped,
            "degraded": self._stopped,
            "failure": self._failure,
        }

    def _limit_state(self) -> dict[str, Any]:
        return {
            "limits": asdict(self._limits),
            "in_force": asdict(self._in_force),
            "boot": asdict(self._bounds.boot),
            "bounds": {name: list(self._bounds.span(name)) for name in LIMIT_NAMES},
            "unsupported": dict(self._bounds.unsupported),
            "changes": list(self._changes),
        }

    def before_step(self) -> None:
        """Put the limits in force. Never raises: after a failure of ours the engine runs on with its boot limits."""
        self._preempted = []
        if not self._stopped:
            self._guarded("before a step", self._enforce)

    def after_step(self, output: Any) -> None:
        """Note the step; never raises.

        Args:
            output: vLLM's SchedulerOutput.
        """
        self._step += 1
        self._guarded("after a step", lambda: self._note(output))

    def release_blocks(self) -> None:
        """Give all held blocks back until the next step; never raises."""
        self._guarded("giving blocks back", lambda: self._held.hold(0))

    def _enforce(self) -> None:
        if self._preempt_asked:
            self._preempt_asked = False
            self._preempted = preempt_above(self._scheduler, self._limits.running_request_cap)
        self._put_in_force()

    def _put_in_force(self) -> None:
        self._held.hold(self._wanted_held())
        self._in_force = self._levers.write(self._limits)

    def _wanted_held(self) -> int:
        return self._held.total - self._limits.usable_kv_blocks

    def _note(self, output: Any) -> None:
        if self._preempted:
            # Before 0.31 vLLM names only those preempted inside schedule(); the worker must forget ours as well.
            output.preempted_req_ids = (output.preempted_req_ids or set()) | set(self._preempted)
        running, waiting = self._scheduler.get_request_counts()
        self._steps.add(
            Step(
                self._step,
                time.time(),
                running,
                waiting,
                output.total_num_scheduled_tokens,
                len(output.preempted_req_ids or ()),
                len(self._held),
                self._held.usage(),
                self._in_force,
            )
        )

    def _closed(self, change: Change) -> list[str]:
        boot = asdict(self._bounds.boot)
        return [
            name for name, value in change.values.items() if name in self._bounds.unsupported and value != boot[name]
        ]

    def _adjusted(self, asked: Limits) -> dict[str, str]:
        wanted, got = asdict(asked), asdict(self._limits)
        spans = {name: self._bounds.span(name) for name in LIMIT_NAMES}
        return {
            name: f"asked {wanted[name]}, set to {got[name]}: allowed {spans[name][0]} to {spans[name][1]}, "
            f"and consistent with the other limits"
            for name in LIMIT_NAMES
            if wanted[name] != got[name]
        }

    def _guarded(self, when: str, action: Callable[[], None]) -> None:
        """Do something of ours; an exception in vLLM's schedule() would kill the engine with every request in it."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine must live
            self._fall_back(f"{when}: {type(error).__name__}: {error}", traceback.format_exc(limit=-3))

    def _fall_back(self, what: str, trace: str) -> None:
        self._failure = {"what": what, "step": self._step, "time_s": time.time(), "trace": trace}
        self._limits = self._in_force = self._bounds.boot
        self._preempt_asked, self._stopped = False, True
        for undo in (self._levers.restore, lambda: self._held.hold(0)):
            try:
                undo()
            except Exception as error:  # noqa: BLE001 - see _guarded
                self._failure["undo"] = f"{type(error).__name__}: {error}"
