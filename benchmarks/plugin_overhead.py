"""What the vLLM plugin adds to one engine step, in microseconds.

Run with an interpreter that has vLLM and flashvector-vllm:
OMP_NUM_THREADS=1 vllm-env/bin/python benchmarks/plugin_overhead.py
The real scheduler with a made-up model, as vLLM's own class and as the tunable one, step by step in turns so that a
busy machine slows both. Every step decodes one token of each running request. Takes under a minute.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler

sys.path.insert(0, str(Path(__file__).parents[1] / "stack" / "vllm_plugin" / "tests"))

from fake_engine import MODEL, Engine, Setup

RUNNING = (1, 16, 64, 256)
STEPS = 1000
STEP_MS = {"SmolLM2-135M on 2 CPU cores, 16 running": 64.0, "a short decode step of a GPU": 5.0}
"""Typical steps to compare with: 16 streams at 248 output tokens per second as measured on a CPU (16 / 248 s), and a
GPU step on the short side."""


def loaded(model: Path, running: int, cls: type | None) -> Engine:
    """An engine with all requests past their prompt, whose steps are then uniform."""
    engine = Engine(Setup(cap=running, step_tokens=8192, blocks=running * 80 + 1, longest=1200), model, cls=cls)
    for _ in range(running):
        engine.add(32, 1100)
    while engine.running < running:
        engine.step()
    engine.check = lambda: None
    return engine


def timed(holder: object, name: str) -> list[float]:
    """Time every call of a method from now on, in microseconds; the list grows."""
    spent_us: list[float] = []
    method = getattr(holder, name)

    def call(*arguments: object) -> object:
        start_s = time.perf_counter()
        result = method(*arguments)
        spent_us.append((time.perf_counter() - start_s) * 1e6)
        return result

    setattr(holder, name, call)
    return spent_us


def compare(model: Path, running: int) -> tuple[float, float, float]:
    """Median microseconds of schedule(): vLLM's own, tunable, and inside the plugin's two hooks of the latter."""
    own, tunable = loaded(model, running, Scheduler), loaded(model, running, None)
    before, after = timed(tunable.tuner, "before_step"), timed(tunable.tuner, "after_step")
    plain, tuned = timed(own.scheduler, "schedule"), timed(tunable.scheduler, "schedule")
    for _ in range(STEPS):
        own.step()
        tunable.step()
    median = statistics.median
    return median(plain), median(tuned), median(map(sum, zip(before, after, strict=True)))


def main() -> None:
    """Measure and print."""
    init_none_hash(sha256)
    most_us = 0.0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(MODEL))
        print("running  own us  tunable us  difference us  in the plugin's hooks us   (medians per step)")
        for running in RUNNING:
            plain, tuned, hooks = compare(Path(folder), running)
            most_us = max(most_us, hooks, tuned - plain)
            print(f"{running:7} {plain:7.1f} {tuned:11.1f} {tuned - plain:14.1f} {hooks:25.1f}")
    for what, step_ms in STEP_MS.items():
        print(f"at most {most_us / step_ms / 10:.3f} % of {step_ms:g} ms: {what}")


if __name__ == "__main__":
    main()
