"""Worker extension: memory figures and cache release through torch, as two methods without arguments."""

from typing import Any

MEMORY, RELEASE = "flashvector_memory", "flashvector_release_memory"
"""Names of the worker methods."""


class MemoryExtension:
    """Mixed into vLLM's worker by `--worker-extension-cls flashvector_vllm.worker.MemoryExtension`."""

    def flashvector_memory(self) -> dict[str, Any]:
        """Memory of this worker's device in bytes; see `memory_figures`."""
        return memory_figures()

    def flashvector_release_memory(self) -> dict[str, Any]:
        """Give cached, unused memory back to the device (`torch.cuda.empty_cache`), then the figures."""
        import torch

        if not torch.cuda.is_available():
            return memory_figures()
        before = torch.cuda.memory_reserved()
        torch.cuda.empty_cache()
        return {**memory_figures(), "released_bytes": before - torch.cuda.memory_reserved()}


def memory_figures() -> dict[str, Any]:
    """Memory of the current CUDA device.

    Returns:
        `cuda` false and a `reason` without CUDA; else allocated, reserved and inactive split bytes of torch's
        allocator (inactive split: free pieces of blocks partly in use, the sign of fragmentation) and the device's
        free and total bytes. Names as in `torch.cuda.memory_stats`.
    """
    import torch

    if not torch.cuda.is_available():
        return {"cuda": False, "reason": f"no CUDA device visible to torch {torch.__version__}"}
    stats = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    return {
        "cuda": True,
        "device": torch.cuda.get_device_name(),
        "allocated_bytes": stats.get("allocated_bytes.all.current", 0),
        "reserved_bytes": stats.get("reserved_bytes.all.current", 0),
        "inactive_split_bytes": stats.get("inactive_split_bytes.all.current", 0),
        "device_free_bytes": free,
        "device_total_bytes": total,
    }
