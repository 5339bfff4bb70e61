"""What an answer may cost."""

import time

import pytest
from page_server import Page, serving

from stack.errors import InputError, UnreachableError
from stack.fetch import Limits, fetched

QUICK = Limits(connect_s=1.0, silence_s=0.5, total_s=1.0, most_bytes=1000)


def test_an_answer_is_status_and_body():
    with serving({"/page": lambda: Page((b"a", b"b"), 418)}) as server:
        answer = fetched(f"{server.url}/page", limits=QUICK)
    assert (answer.status, answer.body) == (418, b"ab")


@pytest.mark.parametrize(
    ("page", "error", "words"),
    [
        (Page((b"x" * 600, b"x" * 600)), InputError, "more than 1000 bytes"),
        (Page((b"x",), pause_s=3.0), UnreachableError, "no answer"),
        (Page((b"x",) * 40, pause_s=0.2), UnreachableError, "within 1 s"),
    ],
    ids=["huge", "silent", "dripping"],
)
def test_what_never_ends_is_cut_off(page, error, words):
    with serving({"/page": lambda: page}) as server:
        began_s = time.monotonic()
        with pytest.raises(error, match=words):
            fetched(f"{server.url}/page", limits=QUICK)
        assert time.monotonic() - began_s < 3.0
