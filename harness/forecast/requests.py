"""The requests of a stage: those that run and wait now, and those to come."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.forecast.belief import Belief
from harness.forecast.load import Load
from harness.forecast.starving import Kind
from stack.simulator.load.traffic import UNSETTLED_S, Traffic, plain
from stack.simulator.world import SHORT_PROMPT_TOKENS

PLACING_S = 1e-3
"""Time in which one replica's requests are put there."""
KV_MATCH = 2.0
"""Drawn contexts are stretched by at most this to fill the KV blocks that are in use."""
USUAL, BATCH, LONG = 0, 1, 2
KIND = {Kind.NONE: USUAL, Kind.BATCH: BATCH, Kind.LONG: LONG}
AFTER_S = 1.0
"""Generated arrivals go on this much longer than asked, so that the last moment is like the others."""

NOT_YET_S = 1e6
"""From here on times are places in a queue of requests that ask when an earlier one is answered."""
LATER_RATIO, LATER_MAX = 12.0, 200_000
"""So many times the requests answered so far are kept ready, as a change may let more of them be answered."""

Tokens = NDArray[np.int64]
Times = NDArray[np.float64]
Arrivals: TypeAlias = tuple[Times, Tokens, Tokens, NDArray[np.bool_]]
"""Times, prompts, outputs, and which are batch work."""


@dataclass(frozen=True)
class Requests:
    """Requests to be put somewhere."""

    prompt: Tokens
    output: Tokens
    is_batch: NDArray[np.bool_]

    def at(self, times_s: Times) -> Arrivals:
        """With their arrivals."""
        return times_s, self.prompt, self.output, self.is_batch


def running_now(belief: Belief, index: int, rng: np.random.Generator) -> Requests:
    """Requests met in the middle of their answers: long ones are met more often, at any point of their time."""
    n, load = belief.present.running[index], belief.load
    output = load.output.draw_in_service(n, rng)
    made = np.floor(rng.random(n) * output).astype(np.int64)
    held = belief.present.kv_tokens[index]
    context = load.prompt.draw(n, rng) + made
    if n and held and load.prefixes is None:
        stretch = min(KV_MATCH, max(1 / KV_MATCH, held / float(context.sum())))
        context = np.maximum(1, (context * stretch).astype(np.int64))
    return Requests(context, np.maximum(1, output - made), np.arange(n) < belief.starving.batch_cap)


def _fresh(belief: Belief, kinds: NDArray[np.int64], rng: np.random.Generator) -> Requests:
    """Requests that have not begun, by kind: 0 as all that finish, 1 batch work, 2 long prompts."""
    n, load = len(kinds), belief.load
    prompt = np.where(kinds == LONG, load.prompt.draw_above(SHORT_PROMPT_TOKENS, n, rng), load.prompt.draw(n, rng))
    return Requests(prompt, load.output.draw(n, rng), kinds == BATCH)


def traffic_of(
    belief: Belief, running: Sequence[Requests], steps_end_s: float, begin_s: float, duration_s: float, seed: int
) -> Traffic:
    """What is placed on the replicas at first, what waits from `steps_end_s` on, and what comes from `begin_s` on."""
    load, present, starving = belief.load, belief.present, belief.starving
    rng = np.random.default_rng([seed, 3])
    parts = [placed.at(np.full(len(placed.prompt), (i + 0.5) * PLACING_S)) for i, placed in enumerate(running)]
    priming = list(primers(belief))
    parts += priming
    left = KIND[starving.in_engines]
    gateway = BATCH if starving.batch_at_gateway else USUAL
    for index, (n, kind) in enumerate([*((n, left) for n in present.waiting), (present.at_gateway, gateway)]):
        times = np.full(n, steps_end_s + (index + 0.5) * PLACING_S)
        parts.append(_fresh(belief, np.full(n, kind), rng).at(times))
    here, primed = (sum(len(part[0]) for part in some) for some in (parts, priming))
    if load.clients.count:
        times = begin_s + asked_again_s(load, here - primed, duration_s, rng)
    else:
        times = begin_s + arrivals_s(load.arrivals_per_s, load.burstiness, duration_s + AFTER_S, seed)
    draw = rng.random(len(times))
    kinds = np.where(draw < starving.share, left, np.where(draw > 1 - starving.batch_share, BATCH, USUAL))
    parts.append(_fresh(belief, kinds, rng).at(times))
    times, prompt, output, is_batch = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    traffic = replace(plain(times, prompt, output), is_batch=is_batch[np.argsort(times, kind="stable")])
    if load.prefixes is not None:
        traffic = load.prefixes.attached(traffic, seed)
    return answered_first(traffic, load, begin_s, primed, rng) if load.clients.count else traffic


def asked_again_s(load: Load, here: int, duration_s: float, rng: np.random.Generator) -> Times:
    """Places for requests to come from clients: those who wait for no answer ask after a pause, the others later."""
    absent = max(0, load.clients.count - here)
    later = min(LATER_MAX, int(LATER_RATIO * (load.clients.count + load.arrivals_per_s * (duration_s + AFTER_S))))
    return np.concatenate([rng.exponential(1.0, absent) * load.clients.pause_s, NOT_YET_S + np.arange(later)])


def answered_first(traffic: Traffic, load: Load, begin_s: float, primed: int, rng: np.random.Generator) -> Traffic:
    """Requests placed later than now wait for the end of an earlier one and a pause; nobody waits for the primers."""
    now = int(np.searchsorted(traffic.arrival_s, begin_s + NOT_YET_S))
    arrival_s, think_s = traffic.arrival_s.copy(), rng.exponential(1.0, len(traffic)) * load.clients.pause_s
    arrival_s[now:] = UNSETTLED_S
    think_s[now : now + primed] = UNSETTLED_S
    return replace(traffic, arrival_s=arrival_s, users=now, think_s=think_s)


def primers(belief: Belief) -> Iterator[Arrivals]:
    """One-token requests that fill each replica's prefix cache before anything else is put there."""
    prefixes = belief.load.prefixes
    if prefixes is None or prefixes.chunks == 0:
        return
    ones = np.ones(prefixes.count, dtype=np.int64)
    placed = Requests(ones * (prefixes.tokens + 1), ones, np.zeros(prefixes.count, dtype=np.bool_))
    for index, serving in enumerate(belief.present.serving):
        if serving:
            yield placed.at(np.full(prefixes.count, (index + 0.25) * PLACING_S))


def arrivals_s(rate_per_s: float, burstiness: float, duration_s: float, seed: int) -> NDArray[np.float64]:
    """Arrival times from 0 on: gamma gaps whose counts vary `burstiness` times as much as Poisson's."""
    rng = np.random.default_rng([seed, 2])
    n = int(rate_per_s * duration_s * 1.3 + 6 * np.sqrt(burstiness * rate_per_s * duration_s)) + 20
    shape = 1.0 / max(1.0, burstiness)
    times: NDArray[np.float64] = np.cumsum(rng.gamma(shape, 1.0 / (rate_per_s * shape), n))
    return times[times < duration_s]
