"""Traffic: who asks when, for how much; prompts share prefixes as chains of chunk ids."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stack.errors import InputError

CHUNK_TOKENS = 512
"""Tokens per prefix chunk unless the traffic says otherwise, as in the public Mooncake trace."""
UNSETTLED_S = 1e18
"""Arrival of a request that waits for the end of another one."""
PER_REQUEST = (
    "arrival_s",
    "prompt_tokens",
    "output_tokens",
    "is_batch",
    "session",
    "chain_start",
    "chain_length",
)
"""Arrays of a `Traffic` with one entry per request."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """Requests in order of arrival, one array per attribute.

    Attributes:
        arrival_s: seconds since the start, ascending.
        prompt_tokens, output_tokens: at least 1 each.
        is_batch: whether the request may wait.
        session: non-negative id that a gateway may hash, -1 for none.
        chain_start, chain_length: the request's part of `chains`.
        chains: chunk ids; a chunk's id stands for its tokens and all before them.
        chunk_tokens: tokens per chunk, a multiple of 16; the size of KV blocks is exact and costs most.
        users: 0 for an open loop; otherwise how many users send one request after the other. Requests beyond the first
            `users` then arrive when an earlier one has ended and the user has paused.
        think_s: that pause before each request; empty for an open loop.
    """

    arrival_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    is_batch: NDArray[np.bool_]
    session: NDArray[np.int64]
    chain_start: NDArray[np.int64]
    chain_length: NDArray[np.int64]
    chains: NDArray[np.int64]
    chunk_tokens: int = CHUNK_TOKENS
    users: int = 0
    think_s: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        """Check the arrays and freeze them."""
        _check(self)
        for one in fields(self):
            if one.name not in ("users", "chunk_tokens"):
                getattr(self, one.name).setflags(write=False)

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.arrival_s)

    @property
    def duration_s(self) -> float:
        """Time of the last arrival that is settled."""
        settled = self.arrival_s[: self.users or len(self)]
        return float(settled[-1]) if len(settled) else 0.0

    @property
    def chunks(self) -> int:
        """One more than the highest chunk id."""
        return int(self.chains.max()) + 1 if len(self.chains) else 0

    def between(self, from_s: float, to_s: float) -> "Traffic":
        """The requests that arrive in [from_s, to_s), counted from `from_s`."""
        first, last = np.searchsorted(self.arrival_s, [from_s, to_s])
        index = np.arange(first, last)
        return self.take(index, self.arrival_s[index] - from_s)

    def take(self, index: NDArray[np.int64], arrival_s: NDArray[np.float64]) -> "Traffic":
        """The requests at `index`, arriving at other, ascending times."""
        own = {name: getattr(self, name)[index] for name in PER_REQUEST}
        return replace(self, **{**own, "arrival_s": arrival_s})


def closed_loop(
    users: int, prompt_tokens: NDArray[np.int64], output_tokens: NDArray[np.int64], think_s: NDArray[np.float64]
) -> Traffic:
    """Requests of `users` users, each of whom sends the next one when the last has ended and a pause has passed.

    Args:
        think_s: the pause before each request, from the start for the first `users`.
    """
    n = len(prompt_tokens)
    if not 1 <= users <= n:
        raise InputError(f"a closed loop of {n} requests needs 1 to {n} users, not {users}")
    arrival_s = np.full(n, UNSETTLED_S)
    arrival_s[:users] = np.sort(think_s[:users])
    return replace(plain(arrival_s, prompt_tokens, output_tokens), users=users, think_s=np.array(think_s))


def plain(
    arrival_s: NDArray[np.float64],
    prompt_tokens: NDArray[np.int64],
    output_tokens: NDArray[np.int64],
    *,
    is_batch: bool = False,
) -> Traffic:
    """Traffic without sessions or shared prefixes; arrivals need not be sorted."""
    order = np.argsort(arrival_s, kind="stable")
    n = len(order)
    return Traffic(
        arrival_s=np.asarray(arrival_s, dtype=np.float64)[order],
        prompt_tokens=np.maximum(1, np.asarray(prompt_tokens, dtype=np.int64)[order]),
        output_tokens=np.maximum(1, np.asarray(output_tokens, dtype=np.int64)[order]),
        is_batch=np.full(n, is_batch),
        session=np.full(n, -1, dtype=np.int64),
        chain_start=np.zeros(n, dtype=np.int64),
        chain_length=np.zeros(n, dtype=np.int64),
        chains=np.zeros(0, dtype=np.int64),
    )


def merged(first: Traffic, second: Traffic) -> Traffic:
    """Both together in order of arrival; the second's sessions and chunks stay distinct from the first's."""
    if len(first.chains) and len(second.chains) and first.chunk_tokens != second.chunk_tokens:
        raise InputError(f"traffic: cannot join chunks of {first.chunk_tokens} and {second.chunk_tokens} tokens")
    sessions = int(first.session.max(initial=-1)) + 1
    other = replace(
        second,
        session=np.where(second.session >= 0, second.session + sessions, -1),
        chain_start=second.chain_start + len(first.chains),
        chains=second.chains + first.chunks,
    )
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(t, name) for t in (first, other)]) for name in (*PER_REQUEST, "chains")
    }
    order = np.argsort(joined["arrival_s"], kind="stable")
    columns = {name: values if name == "chains" else values[order] for name, values in joined.items()}
    chunk_tokens = (first if len(first.chains) else second).chunk_tokens
    return Traffic(**columns, chunk_tokens=chunk_tokens)


def _check(traffic: Traffic) -> None:
    n = len(traffic.arrival_s)
    for name in (*PER_REQUEST, *(("think_s",) if traffic.users else ())):
        if len(getattr(traffic, name)) != n:
            raise InputError(f"traffic: {name} has {len(getattr(traffic, name))} entries, expected {n}")
    if n and (not np.isfinite(traffic.arrival_s).all() or (np.diff(traffic.arrival_s) < 0).any()):
        raise InputError("traffic: arrival_s must be finite and ascending")
    if (traffic.prompt_tokens < 1).any() or (traffic.output_tokens < 1).any():
        raise InputError("traffic: prompt_tokens and output_tokens must be at least 1")
    if traffic.chunk_tokens < 16 or traffic.chunk_tokens % 16:
        raise InputError(f"traffic: chunk_tokens must be a multiple of 16, not {traffic.chunk_tokens}")
    most = traffic.prompt_tokens + traffic.output_tokens + traffic.chunk_tokens - 1
    if (traffic.chain_length * traffic.chunk_tokens > most).any():
        raise InputError(f"traffic: a chain must not be longer than prompt and answer, at {traffic.chunk_tokens} each")
