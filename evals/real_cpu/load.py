"""Traffic on a live stack: `vllm bench serve` with the arguments of a load."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from evals.real_cpu.scenario import Load
from stack.errors import InputError
from stack.local.configuration import LocalStack

START_S = 25.0
"""Longest time the traffic program takes to load before it sends its first request."""
COMMON_WORDS = 260
"""Words of the part that all prompts share: some 350 tokens."""


def command_of(load: Load, configuration: LocalStack, seconds: float, folder: Path, name: str) -> tuple[str, ...]:
    """How the traffic is started.

    Args:
        seconds: how long it lasts.
        folder: for its dataset and its results.
        name: of its files; its seed too, so that no prompt of another traffic is found in a prefix cache.

    Raises:
        InputError: the engines are not started by `vllm serve MODEL`.
    """
    if len(configuration.engine.command) < 3:
        raise InputError(f"engine.command: expected vllm, serve and a model, found {configuration.engine.command}")
    program, _, model = configuration.engine.command[:3]
    requests, seed = max(1, round(load.rate_per_s * seconds)), str(crc32(name.encode()))
    own: tuple[str, ...] = ()
    if load.prompts:
        dataset = folder / f"prompts-{name}.jsonl"
        dataset.write_text("".join(f"{line}\n" for line in stamped_prompts(requests)), encoding="utf-8")
        own = ("--dataset-name", "custom", "--dataset-path", str(dataset), "--skip-chat-template", "--disable-shuffle")
    return (
        program,
        *("bench", "serve", "--backend", "openai", "--base-url", configuration.gateway.url),
        *("--endpoint", "/v1/completions", "--model", configuration.engine.model, "--tokenizer", model),
        *("--request-rate", f"{load.rate_per_s:g}", "--num-prompts", str(requests), "--seed", seed),
        *("--ignore-eos", "--disable-tqdm", "--ready-check-timeout-sec", "0"),
        *("--save-result", "--result-dir", str(folder), "--result-filename", f"load-{name}.json"),
        *own,
        *load.arguments,
    )


def stamped_prompts(count: int) -> Iterator[str]:
    """Lines of a dataset: the time, a long common part, and a question of its own."""
    common = " ".join(f"rule{n} applies to case {n % 7}" for n in range(COMMON_WORDS // 6))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(count):
        stamp = (start + timedelta(seconds=1.7 * number)).isoformat(timespec="microseconds")
        yield json.dumps({"prompt": f"[{stamp}] {common} Question {number}: which rule applies?"})


@contextmanager
def running(
    name: str,
    loads: Sequence[Load],
    configuration: LocalStack,
    seconds: float,
    folder: Path,
    environment: dict[str, str],
) -> Iterator[None]:
    """All loads of a case at once; those that still run at the end of the block are ended."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ends:
        for number, load in enumerate(loads):
            log = ends.enter_context((folder / f"load-{number}.log").open("w"))
            command = command_of(load, configuration, seconds, folder, f"{name}-{number}")
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            ends.callback(_ended, process)
        yield


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
