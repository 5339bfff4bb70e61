"""KV blocks taken out of use, and the usage figure without them."""

from typing import Any


class HeldBlocks:
    """Holds blocks of vLLM's pool so that requests can't get them.

    Held blocks would count as used in vLLM's `kv_cache_usage_perc`. The pool's own `get_usage` is therefore replaced
    for this pool: every reader of it (metric, log line) sees the share of the usable blocks that requests hold.

    Args:
        pool: vLLM's BlockPool.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._blocks: list[Any] = []
        self.total: int = pool.num_gpu_blocks - 1
        """Blocks of the pool without the null block."""
        pool.get_usage = self.usage

    def __len__(self) -> int:
        """Blocks held now."""
        return len(self._blocks)

    def hold(self, wanted: int) -> None:
        """Hold this many blocks; where too few are free, take what there is now and the rest at later calls.

        Empty blocks go first, then the least recently used cached ones: the pool's own order of eviction.
        """
        short = wanted - len(self._blocks)
        if short > 0:
            if take := min(short, self._pool.get_num_free_blocks()):
                self._blocks += self._pool.get_new_blocks(take)
        elif short < 0:
            back = self._blocks[short:]
            del self._blocks[short:]
            self._pool.free_blocks(back)

    def usage(self) -> float:
        """Share of the blocks not held that requests use, 0 to 1."""
        usable = self.total - len(self._blocks)
        return 1.0 - self._pool.get_num_free_blocks() / usable if usable > 0 else 0.0
