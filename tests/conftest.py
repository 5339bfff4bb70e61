"""For all tests: what they found is told at the end of the run, and a busy machine is no defect."""

import gc
from collections.abc import Callable, Sequence

import pytest
from hypothesis import settings

settings.register_profile("tests", deadline=None)  # tests run side by side: a slow example proves nothing
settings.load_profile("tests")

SAID = "said"
Say = Callable[[str, Sequence[str]], None]


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Say:
    """Lines under a heading, shown sorted and each once at the end of the run."""

    def tell(heading: str, lines: Sequence[str]) -> None:
        request.node.user_properties.extend((SAID, (heading, line)) for line in lines)

    return tell


def pytest_collection_finish() -> None:
    """What is loaded by now stays: without this up to a fifth of the time goes into looking for garbage in it."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the tests found: it came with their reports, from whichever process they ran in."""
    reports = (report for of_a_kind in terminalreporter.stats.values() for report in of_a_kind)
    found: dict[str, set[str]] = {}
    for name, value in (one for report in reports for one in getattr(report, "user_properties", ())):
        if name == SAID:
            heading, line = value
            found.setdefault(heading, set()).add(line)
    for heading, lines in sorted(found.items()):
        terminalreporter.section(heading)
        terminalreporter.write_line("\n".join(sorted(lines)))
