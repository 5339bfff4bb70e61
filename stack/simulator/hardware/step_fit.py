"""Step times from steps that were seen: how long a step takes by what it computes."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from stack.simulator.engine.layout import Floats

ROUNDS = 12
"""Reweightings; the coefficients change by less than a thousandth after about eight."""
FLOOR_RATIO = 0.02
"""Deviations below this all count alike, so that no single step decides."""
SURE, OPTIONAL = (0, 1), ((2,), (3,), (2, 3))
"""Columns of the sum: base and tokens; requests, KV blocks, or both."""
NEEDED_RATIO = 0.95
"""More columns must leave at most this share of the deviations."""
FOLDS = 4
KIND_MIN = 5
"""Steps of a kind from which its median time is taken for known."""


@dataclass(frozen=True)
class SeenSteps:
    """Steps as an engine recorded them, one entry each.

    Attributes:
        duration_ms: from its scheduling to the next one's.
        tokens: scheduled in it, prompts' and answers'.
        sequences: requests running in it.
        kv_blocks: KV blocks they held.
    """

    duration_ms: Floats
    tokens: Floats
    sequences: Floats
    kv_blocks: Floats

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.duration_ms)

    def where(self, chosen: np.ndarray) -> "SeenSteps":
        """The chosen ones, by mask or index."""
        return SeenSteps(self.duration_ms[chosen], self.tokens[chosen], self.sequences[chosen], self.kv_blocks[chosen])


@dataclass(frozen=True)
class StepFit:
    """Time of a step as a sum; none of its parts is negative.

    Attributes:
        base_ms: of any step: the weights are read, kernels launched, results handed out.
        token_ms: per token computed, of a prompt or an answer.
        sequence_ms: per running request beside its tokens.
        kv_block_ms: per KV block that the running requests hold.
    """

    base_ms: float
    token_ms: float
    sequence_ms: float
    kv_block_ms: float

    def duration_ms(self, steps: SeenSteps) -> Floats:
        """What the steps should have taken."""
        found: Floats = _design(steps) @ np.array([self.base_ms, self.token_ms, self.sequence_ms, self.kv_block_ms])
        return found

    def ratio(self, steps: SeenSteps) -> Floats:
        """What the steps took over what they should have taken."""
        found: Floats = steps.duration_ms / self.duration_ms(steps)
        return found

    def miss(self, steps: SeenSteps) -> float:
        """Mean relative deviation of single steps: what `fitted` makes small."""
        return float(np.abs(self.duration_ms(steps) / steps.duration_ms - 1.0).mean())


def fitted(steps: SeenSteps) -> StepFit:
    """The sum that is closest to the steps: smallest total of relative deviations, so that stalls count little.

    What goes by request and by KV is taken in only where it is seen to matter: batches that are much alike would
    otherwise give it any value, which tells at larger ones.
    """
    best = _fitted(steps, SURE)
    for more in OPTIONAL:
        tried = _fitted(steps, (*SURE, *more))
        if tried.miss(steps) < NEEDED_RATIO * best.miss(steps):
            best = tried
    return best


def _fitted(steps: SeenSteps, chosen: tuple[int, ...]) -> StepFit:
    """Least absolute deviations by iteratively reweighted least squares (Schlossmacher 1973), never negative."""
    measured = np.maximum(steps.duration_ms, 1e-6)
    relative, ones = _design(steps)[:, chosen] / measured[:, None], np.ones(len(steps))
    weights, found = ones, np.zeros(len(chosen))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = non_negative(relative * root[:, None], ones * root)
        weights = 1.0 / np.maximum(FLOOR_RATIO, np.abs(relative @ found - 1.0))
    values = dict(zip(chosen, map(float, found), strict=True))
    return StepFit(*(values.get(column, 0.0) for column in range(4)))


def non_negative(matrix: Floats, target: Floats) -> Floats:
    """The non-negative least-squares solution, by trying every set of columns: exact, and quick for four of them."""
    columns = matrix.shape[1]
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-12)
    gram, moment = (matrix / scale).T @ (matrix / scale), (matrix / scale).T @ target
    best, least = np.zeros(columns), 0.0
    for size in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), size)):
            part = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], moment[chosen], rcond=1e-8)[0]
            left = float(part @ gram[np.ix_(chosen, chosen)] @ part - 2 * part @ moment[chosen])
            if part.min() >= 0 and left < least - 1e-9 * abs(least):
                best, least = np.zeros(columns), left
                best[chosen] = part
    found: Floats = best / scale
    return found


def _design(steps: SeenSteps) -> Floats:
    return np.column_stack([np.ones(len(steps)), steps.tokens, steps.sequences, steps.kv_blocks])


def error_ratio(steps: SeenSteps, kinds: np.ndarray) -> float:
    """How far a fit is off on steps of kinds it has not seen: median over the kinds, those with few steps left out.

    Args:
        kinds: the kind of each step, as a number; steps of one kind hold about the same.
    """
    misses = []
    for fold in range(FOLDS):
        tried = kinds % FOLDS == fold
        if not tried.any() or tried.all():
            continue
        ratio = fitted(steps.where(~tried)).ratio(steps.where(tried))
        for kind in np.unique(kinds[tried]):
            of_kind = ratio[kinds[tried] == kind]
            if len(of_kind) >= KIND_MIN:
                misses.append(abs(float(np.median(of_kind)) - 1.0))
    return float(np.median(misses)) if misses else fitted(steps).miss(steps)
