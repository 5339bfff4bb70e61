"""Forecasts of cap changes on a real stack without step-time tables, against what came.

Each capture (`tests/data/step_captures`; `evals/step_captures.py` tells what is in one) is a stack of two vLLM 0.32
engines with SmolLM2-135M on two CPU cores behind HAProxy, whose cap on running requests was changed under load. The
step times are learnt from, and the belief is made of, what was seen before the change.

Run: PYTHONPATH=. python benchmarks/measured_steps.py [CAPTURE ...] [--json FILE]
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from evals.step_captures import Capture, came, forecast_of, read_capture

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "step_captures"
NAMES = ("finished_per_s", "itl_mean_s")


def rows(capture: Capture) -> Iterator[dict[str, object]]:
    """One row a change: what was predicted, what came, and the error of each figure; None where no forecast was."""
    for change in capture.changes():
        forecast, seen = forecast_of(capture, change), came(capture, change)
        row: dict[str, object] = {
            "capture": capture.name,
            "before": change.before,
            "after": change.after,
            "load": dict(change.load),
            "trust": forecast.trust.value,
            "note": forecast.note,
        }
        for name in NAMES:
            predicted, true = forecast.effects.get(name), getattr(seen, name)
            row[f"{name}_came"] = true
            row[name] = None if predicted is None else predicted.after
            row[f"{name}_error"] = None if predicted is None else predicted.after / true - 1.0
        yield row


def main() -> None:
    """Print a line a change, and write all of it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="*", type=Path, default=sorted(FOLDER.glob("*.json.xz")))
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = [row for path in asked.captures for row in rows(read_capture(path))]
    for row in found:
        errors = ["none" if row[f"{name}_error"] is None else f"{row[f'{name}_error']:+.0%}" for name in NAMES]
        change = f"{row['capture']:22} {row['before']:>3} -> {row['after']:<3}"
        print(f"{change} throughput {errors[0]:>5}, ITL {errors[1]:>5}  {row['trust']}: {row['note']}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
