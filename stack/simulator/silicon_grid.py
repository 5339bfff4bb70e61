"""The points at which step times are kept; between them they are interpolated."""

from collections.abc import Mapping

TOKENS = sorted({*range(1, 17), *(round(2 ** (4 + i / 4)) for i in range(41))})
BATCHES = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024]
CONTEXTS = [16, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384]
CONTEXTS += [32768, 65536, 131072]
CHUNKS = [1, 16, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384]
CACHED = [0, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]

GRID: Mapping[str, list[int]] = {
    "tokens": TOKENS,
    "batches": BATCHES,
    "contexts": CONTEXTS,
    "chunks": CHUNKS,
    "cached": CACHED,
}
