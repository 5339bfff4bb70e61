"""docs/safety.md names a test for each promise, and every test that it names exists."""

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "safety.md").read_text(encoding="utf-8")


def test_every_promise_has_a_test():
    numbers = [int(row) for row in re.findall(r"^\| (\d+) \|.*test_", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, 18))


def test_every_test_that_is_named_exists():
    files = [*(PROJECT / "tests").rglob("test_*.py"), *(PROJECT / "stack" / "vllm_plugin").rglob("test_*.py")]
    defined = set(re.findall(r"^ *def (test_\w+)\(", "\n".join(one.read_text(encoding="utf-8") for one in files), re.M))
    named = set(re.findall(r"\btest_\w+", PAGE))
    assert len(named) > 50
    assert not named - defined - {one.stem for one in files}
