from pathlib import Path

import pytest

from evals.step_captures import came, forecast_of, read_capture, snapshots

FOLDER = Path(__file__).parents[1] / "data" / "step_captures"
WITHIN = 0.25


@pytest.mark.parametrize("name", ["closed_short", "open_short"])
def test_what_came_after_a_cap_change_was_predicted(name):
    capture = read_capture(FOLDER / f"{name}.json.xz")
    changes = capture.changes()
    assert changes
    for change in changes:
        predicted, seen = forecast_of(capture, change).effects, came(capture, change)
        assert predicted["finished_per_s"].after == pytest.approx(seen.finished_per_s, rel=WITHIN)
        assert predicted["itl_mean_s"].after == pytest.approx(seen.itl_mean_s, rel=WITHIN)


def test_a_forecast_sees_nothing_from_after_the_change():
    capture = read_capture(FOLDER / "closed_short.json.xz")
    change = capture.changes()[0]
    windows = list(snapshots(capture, change))
    assert len(windows) == 2 and all(one.time_s <= change.at_s for one in windows)
    assert all(facts.get("step_batch_max", 0.0) <= 4.0 for facts in windows[-1].configuration.values())
