"""Record the library's own answers for test_silicon_answers.py; needs the optional extra.

Run: python -m tests.stack.simulator.record_answers
"""

import json
from pathlib import Path
from random import Random

from stack.simulator.hardware.gpu import GPUS, model_named
from stack.simulator.hardware.model_files import model_file, model_names, table_facts
from stack.simulator.hardware.precision import precision_named
from stack.simulator.silicon.distil import spread_of_experts
from stack.simulator.silicon.grid import ATTENTION_BATCHES, CACHED, CHUNKS, CONTEXTS
from stack.simulator.silicon.library import LIBRARY, Kernels
from stack.simulator.silicon.targets import TARGETS, config_of

ANSWERS = Path(__file__).parents[2] / "data" / "silicon_answers.json"
TABLES_PER_MODEL = 4
QUERIES = 10
SEED = 20_261_130

Row = tuple[str, int, int, int, float]


def main() -> None:
    random = Random(SEED)
    answers = {}
    for name in model_names():
        if name not in TARGETS:
            continue
        keys = sorted(model_file(name)["tables"])
        for key in sorted(random.sample(keys, min(TABLES_PER_MODEL, len(keys)))):
            answers[f"{name} {key}"] = _rows(_kernels(name, key), random)
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(rows, separators=(',', ':'))}" for key, rows in answers.items())
    ANSWERS.write_text(f'{{\n"library": {json.dumps(LIBRARY)},\n"answers": {{\n{lines}\n}}\n}}\n')


def _kernels(name: str, key: str) -> Kernels:
    gpu, tensor_parallel, precision = table_facts(key)
    config = config_of(TARGETS[name][0])
    experts = spread_of_experts(model_named(name), model_file(name)["config"], tensor_parallel, precision)
    return Kernels(config, GPUS[gpu], tensor_parallel, precision_named(precision), experts)


def _rows(kernels: Kernels, random: Random) -> list[Row]:
    """Random queries. Fused with projections, attention behind cached tokens comes out below the projections' own time.

    There the tables hold more than the library says, so that those queries are left out.
    """
    rows: list[Row] = []
    knows_cached = not kernels.fused_attention
    for _ in range(QUERIES):
        batch, context = _log(random, 1, 512), _log(random, 32, 32_768)
        rows.append(("decode", batch, context, 0, kernels.decode(batch, context)))
        tokens, cached = _log(random, 16, 12_000), random.choice((0, _log(random, 16, 32_768))) * knows_cached
        rows.append(("prefill", tokens, cached, 0, kernels.prefill(tokens, cached)))
        tokens, batch, beyond = _log(random, 16, 8000), _log(random, 1, 256), _log(random, 1, 1000)
        rows.append(("mixed", tokens, batch, beyond, kernels.mixed(tokens, batch, beyond)))
    for _ in range(QUERIES // 2):
        batch, context = random.choice(ATTENTION_BATCHES), random.choice(CONTEXTS)
        rows.append(("decode_at_grid", batch, context, 0, kernels.decode(batch, context)))
        tokens, cached = random.choice(CHUNKS), random.choice(CACHED) * knows_cached
        rows.append(("prefill_at_grid", tokens, cached, 0, kernels.prefill(tokens, cached)))
    return [(kind, a, b, c, float(f"{time_ms:.7g}")) for kind, a, b, c, time_ms in rows]


def _log(random: Random, low: int, high: int) -> int:
    return round(low * (high / low) ** random.random())


if __name__ == "__main__":
    main()
