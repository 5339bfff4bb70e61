"""The points at which step times are kept; between them they are linear.

They are the points at which the kernels were timed (matrix products, decode attention), so that hardly anything is lost
by interpolation; only prefill attention behind cached tokens is curved between its points.
"""

from collections.abc import Mapping
from itertools import chain

_TILES = chain(range(16, 128, 16), range(128, 256, 32), range(256, 4353, 256))
_EXPERTS = (320, 384, 6144, 8192, 12288, 16384)
TOKENS = sorted({*range(1, 16), *chain.from_iterable((size, size + 1) for size in _TILES), *_EXPERTS})
"""A matrix product grows by steps: one token more than full tiles begins a new row of tiles."""
BATCHES = [size for size in TOKENS if size <= 1024]
ATTENTION_BATCHES = [2**power for power in range(11)]
CONTEXTS = [2**power for power in range(4, 18)]
CHUNKS = [1, 16, 32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384]
CACHED = [0, *(2**power for power in range(6, 18))]

GRID: Mapping[str, list[int]] = {
    "tokens": TOKENS,
    "batches": BATCHES,
    "attention_batches": ATTENTION_BATCHES,
    "contexts": CONTEXTS,
    "chunks": CHUNKS,
    "cached": CACHED,
}
