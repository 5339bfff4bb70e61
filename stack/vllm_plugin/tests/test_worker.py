import pytest
import torch
from flashvector_vllm.worker import MEMORY, RELEASE, MemoryExtension


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a machine without CUDA")
@pytest.mark.parametrize("method", [MEMORY, RELEASE])
def test_without_cuda_the_answer_says_so(method):
    answer = getattr(MemoryExtension(), method)()
    assert answer["cuda"] is False and answer["reason"] == f"no CUDA device visible to torch {torch.__version__}"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="asks for a machine with CUDA")
def test_with_cuda_cached_memory_is_seen_and_released():
    block = torch.zeros(64 * 2**20, dtype=torch.uint8, device="cuda")
    before = MemoryExtension().flashvector_memory()
    assert before["allocated_bytes"] >= 64 * 2**20 and before["device_total_bytes"] > before["device_free_bytes"]
    del block
    after = MemoryExtension().flashvector_release_memory()
    assert after["released_bytes"] >= 64 * 2**20 and after["reserved_bytes"] < before["reserved_bytes"]


def test_nothing_of_the_extension_clashes_with_vllms_workers():
    from vllm.v1.worker.worker_base import WorkerBase, WorkerWrapperBase

    names = [name for name in dir(MemoryExtension) if not name.startswith("__")]
    assert sorted(names) == sorted([MEMORY, RELEASE])
    assert not any(hasattr(cls, name) for cls in (WorkerBase, WorkerWrapperBase) for name in names)
