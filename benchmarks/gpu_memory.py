"""Checks, on a machine with a GPU, that NVML and torch's memory statistics tell what the agent takes them for.

Run: PYTHONPATH=. python benchmarks/gpu_memory.py [PYTHON]

PYTHON is an interpreter that has torch with CUDA (default: python3); vLLM is not needed. 1 GiB is taken on the first
device, every other piece of it given back, then all. Prints a table in Markdown; exit code 1 where a check fails.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.local.reading.nvml import DeviceMemory, NoDevice, Nvml

GIB = 2**30
PIECES, PIECE_BYTES = 64, 16 * 2**20
PLUGIN = Path(__file__).parents[1] / "stack/vllm_plugin"
STAGES = f"""
import json, sys
import torch
from flashvector_vllm.worker import MemoryExtension, memory_figures
tell = lambda figures: (print(json.dumps(figures), flush=True), sys.stdin.readline())
if not torch.cuda.is_available():
    raise SystemExit(memory_figures()["reason"])
torch.zeros(1, device="cuda")
tell(memory_figures())
whole = torch.empty({PIECES} * {PIECE_BYTES}, dtype=torch.uint8, device="cuda")
del whole  # one block of the allocator, out of which the pieces are now cut
pieces = [torch.empty({PIECE_BYTES}, dtype=torch.uint8, device="cuda") for _ in range({PIECES})]
tell(memory_figures())
pieces = pieces[::2]
tell(memory_figures())
del pieces
tell(MemoryExtension().flashvector_release_memory())
"""
"""Run by the interpreter with torch; waits for a line after each stage."""


@dataclass(frozen=True)
class Check:
    """One statement, what was found, and whether it is true."""

    what: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Stage:
    """Figures of torch and of NVML at one moment."""

    torch: dict[str, float | str]
    nvml: DeviceMemory

    def of(self, name: str) -> float:
        """A figure of torch, in bytes."""
        return float(self.torch[f"{name}_bytes"])


@contextmanager
def staged(python: str) -> Iterator[subprocess.Popen[str]]:
    """The interpreter with torch, at its first stage."""
    command = (python, "-c", STAGES)
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(PLUGIN)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def stages(python: str, nvml: Nvml) -> list[Stage]:
    """All four stages: at rest, 1 GiB taken, half of it given back in pieces, everything given back."""
    found: list[Stage] = []
    with staged(python) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("no pipe to the interpreter with torch")
        for _ in range(4):
            line = process.stdout.readline()
            memory = nvml.memory(("0",))
            if not line or isinstance(memory, NoDevice):
                raise SystemExit(f"stage {len(found) + 1} did not come: {memory if line else 'torch ended'}")
            found.append(Stage(json.loads(line), memory))
            process.stdin.write("\n")
            process.stdin.flush()
    return found


def checks(names: tuple[str, ...], rest: Stage, taken: Stage, holes: Stage, released: Stage) -> Iterator[Check]:
    """What has to be true of the four stages."""
    taken_bytes = float(PIECES * PIECE_BYTES)
    nvml_bytes = rest.nvml.free_bytes - taken.nvml.free_bytes
    total = taken.of("device_total")
    yield Check("NVML and torch name the same device", f"{names[:1]}, {rest.torch['device']}", _same(names, rest))
    yield _near("total memory, NVML against torch", rest.nvml.total_bytes, total, 0.05)
    yield _near("allocated by torch for 1 GiB", taken.of("allocated") - rest.of("allocated"), taken_bytes, 0.001)
    yield _near("taken by NVML for 1 GiB", nvml_bytes, taken_bytes, 0.05)
    yield _near("free, NVML against torch", taken.nvml.free_bytes, taken.of("device_free"), 0.01)
    yield _near(
        "allocated after half was given back", holes.of("allocated") - rest.of("allocated"), taken_bytes / 2, 0.001
    )
    yield _near("reserved is as before", holes.of("reserved"), taken.of("reserved"), 0.001)
    split = holes.of("inactive_split") - taken.of("inactive_split")
    yield _near("inactive split: the holes", split, taken_bytes / 2, 0.001)
    yield _near("released by the plugin's call", released.of("released"), taken_bytes, 0.01)
    back = released.nvml.free_bytes - holes.nvml.free_bytes
    yield _near("given back by NVML", back, taken_bytes, 0.05)


def _near(what: str, found: float, wanted: float, within: float) -> Check:
    return Check(what, f"{found / GIB:.3f} GiB, expected {wanted / GIB:.3f}", abs(found - wanted) <= within * wanted)


def _same(names: tuple[str, ...], stage: Stage) -> bool:
    return bool(names) and names[0] == stage.torch["device"]


def main() -> None:
    """Print a table."""
    nvml = Nvml()
    if nvml.problem is not None:
        raise SystemExit(f"no GPU to check: {nvml.problem}")
    found = list(checks(nvml.names(), *stages(sys.argv[1] if len(sys.argv) > 1 else "python3", nvml)))
    print("| check | found | |\n| --- | --- | --- |")
    for check in found:
        print(f"| {check.what} | {check.found} | {'holds' if check.holds else '**does not hold**'} |")
    raise SystemExit(any(not check.holds for check in found))


if __name__ == "__main__":
    main()
