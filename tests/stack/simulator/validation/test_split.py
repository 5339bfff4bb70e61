"""Halves, and generations that stand in for others."""

import pytest
from made_rows import row

from stack.simulator.validation.case import case_of
from stack.simulator.validation.generations import by_nearness, generation_of, schedules_asynchronously
from stack.simulator.validation.split import halves


def ids(cases: object) -> list[str]:
    return [case.row.row_id for case in cases]


def test_alternately_within_each_dataset_model_and_gpu():
    rows = [
        row("1", concurrency=1.0),
        row("2", concurrency=2.0),
        row("a", concurrency=1.0, gpu="h200_sxm"),
        row("3", concurrency=4.0),
        row("b", concurrency=2.0, gpu="h200_sxm"),
        row("x", concurrency=1.0, dataset="other"),
        row("4", concurrency=8.0),
    ]
    fit, test = halves([case_of(one) for one in rows])
    assert ids(fit) == ["1", "a", "3", "x"]
    assert ids(test) == ["2", "b", "4"]


def test_repetitions_of_one_configuration_stay_together():
    rows = [row("1"), row("1 again"), row("2", concurrency=16.0), row("1 once more"), row("2 again", concurrency=16.0)]
    fit, test = halves([case_of(one) for one in rows])
    assert ids(fit) == ["1", "1 again", "1 once more"]
    assert ids(test) == ["2", "2 again"]


@pytest.mark.parametrize(
    ("engine", "generation", "ahead"),
    [
        ("vllm 0.12.0", "vllm-0.12", False),
        ("vllm 0.18.0", "vllm-0.18", True),
        ("vllm (0.15-era, OTEL journey tracing on)", "vllm-0.15", True),
        ("vllm nan", "vllm-unversioned", True),
    ],
)
def test_generations(engine: str, generation: str, ahead: bool):
    assert generation_of(engine) == generation
    assert schedules_asynchronously(generation) is ahead


def test_the_nearest_generation_stands_in():
    known = ["vllm-0.12", "vllm-0.18", "vllm-unversioned"]
    assert by_nearness("vllm-0.13", known)[0] == "vllm-0.12"
    assert by_nearness("vllm-0.15", known)[0] == "vllm-0.18"
    assert by_nearness("vllm-0.30", ["vllm-0.12", "vllm-0.18"])[0] == "vllm-0.18"
    assert by_nearness("vllm-unversioned", known)[0] == "vllm-unversioned"
    assert by_nearness("vllm-unversioned", ["vllm-0.12", "vllm-0.18"])[0] == "vllm-0.18"
