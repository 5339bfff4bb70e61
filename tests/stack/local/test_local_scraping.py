"""Scrapes of our own: one target's trouble is its own."""

import time

from live_pages import configuration_of, live_pages
from page_server import Page, captured, serving, text

from stack.clock import WallClock
from stack.local.reading.scraping import Scraping
from stack.reading import GATEWAY


def scraped_for(configuration, seconds: float) -> tuple[dict[str, int], dict[str, str], float]:
    """Readings per replica, problems, and how long stopping took."""
    scraping = Scraping(configuration, WallClock(), interval_s=0.1)
    start_s = time.time()
    scraping.start()
    time.sleep(seconds)
    found, problems = scraping.readings(start_s, time.time()), dict(scraping.problems)
    began_s = time.monotonic()
    scraping.stop()
    counts: dict[str, int] = {}
    for reading in found:
        counts[reading.replica] = counts.get(reading.replica, 0) + 1
    return counts, problems, time.monotonic() - began_s


def test_all_targets_are_read_and_the_ring_is_bounded(tmp_path):
    with live_pages(tmp_path) as pages:
        scraping = Scraping(pages.configuration, WallClock(), interval_s=0.05, kept_s=0.1)
        scraping.start()
        deadline_s = time.monotonic() + 20.0
        while min(pages.r1.calls.get("/metrics", 0), pages.gateway.calls.get("/metrics", 0)) < 8:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        scraping.stop()
        found = scraping.readings(0.0, time.time() + 1.0)
    assert {reading.replica for reading in found} == {"r1", "r2", GATEWAY}
    assert sum(reading.replica == GATEWAY for reading in found) == 4


def test_a_replica_that_is_down_costs_only_its_own_readings(tmp_path):
    with live_pages(tmp_path) as pages:
        pages.r2.stop()
        counts, problems, _ = scraped_for(pages.configuration, 1.0)
    assert counts["r1"] >= 2
    assert list(problems) == ["r2"]
    assert "no answer" in problems["r2"]


def test_a_replica_that_hangs_does_not_hold_up_the_others(tmp_path):
    with (
        serving({"/metrics": lambda: Page((captured("steady_c4"),), pause_s=30.0)}) as hanging,
        serving({"/metrics": text(captured("steady_c4"))}) as sound,
        serving({"/metrics": lambda: Page((b"<html>hello</html>",))}) as nonsense,
    ):
        configuration = configuration_of(tmp_path, hanging.url, sound.url, nonsense.url)
        counts, problems, stopped_s = scraped_for(configuration, 1.0)
    assert counts["r2"] >= 2
    assert "r1" not in counts
    assert "r1" in problems
    assert "expected" in problems[GATEWAY]
    assert stopped_s < 6.0
