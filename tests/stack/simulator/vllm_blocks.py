"""vLLM 0.32's KV blocks and prefix cache, written plainly. Names in brackets are the functions of vLLM."""

from vllm_traces import BLOCK_TOKENS


def blocks_for(tokens: int) -> int:
    """KV blocks that hold so many tokens."""
    return -(-tokens // BLOCK_TOKENS)


class BlockPool:
    """Blocks, their users and the cache.

    Attributes:
        free: unused blocks, the next one to be taken first. Cached blocks that nobody uses are among them.
        users: how many requests use each block.
        content: what a cached block holds, as the chain's id, which stands for all tokens before it too.
        holders: blocks with the same content, in the order in which they were entered.
    """

    def __init__(self, num_blocks: int, caching: bool) -> None:
        self.caching = caching
        self.free = list(range(1, num_blocks))
        self.users = dict.fromkeys(self.free, 0)
        self.content: dict[int, int] = {}
        self.holders: dict[int, list[int]] = {}

    def cached_prefix(self, chain: tuple[int, ...], most: int) -> list[int]:
        """Blocks of the longest cached prefix, at most so many [find_longest_cache_hit]; the oldest of equal ones."""
        found = []
        for content in chain[:most]:
            if content not in self.holders:
                break
            found.append(self.holders[content][0])
        return found

    def unused_among(self, blocks: list[int]) -> int:
        """How many of the blocks nobody uses."""
        return sum(self.users[block] == 0 for block in blocks)

    def take_cached(self, blocks: list[int]) -> None:
        """One more request uses these cached blocks [touch]."""
        for block in blocks:
            if self.users[block] == 0:
                self.free.remove(block)
            self.users[block] += 1

    def take_new(self, count: int) -> list[int]:
        """Blocks from the front of the free list; what they held is forgotten [get_new_blocks]."""
        taken, self.free = self.free[:count], self.free[count:]
        for block in taken:
            self.users[block] = 1
            self.forget(block)
        return taken

    def forget(self, block: int) -> None:
        """Evict a block's content; other blocks with the same content stay."""
        if block not in self.content:
            return
        content = self.content.pop(block)
        self.holders[content].remove(block)
        if not self.holders[content]:
            del self.holders[content]

    def enter(self, block: int, content: int) -> None:
        """A full block becomes findable; equal ones are not merged [cache_full_blocks]."""
        if self.caching:
            self.content[block] = content
            self.holders.setdefault(content, []).append(block)

    def give_back(self, blocks: list[int]) -> None:
        """A request gives back its blocks, last one first: uncached ones to the front, cached ones to the end."""
        front, end = [], []
        for block in reversed(blocks):
            self.users[block] -= 1
            if self.users[block] == 0:
                (end if block in self.content else front).append(block)
        self.free = front + self.free + end
