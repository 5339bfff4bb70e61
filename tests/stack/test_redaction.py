import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stack.errors import InputError, RefusedError
from stack.reading import Reading
from stack.redaction import REDACTED, RedactedRecord, keep_secret, keep_url_secret, place_of, redacted, redacted_tree

SECRET = "canary-5f0e-written-nowhere"


@pytest.fixture(autouse=True)
def _kept():
    keep_secret(SECRET)


@given(st.text(), st.text())
def test_a_secret_made_known_is_taken_out_wherever_it_stands(before, after):
    assert SECRET not in redacted(f"{before}{SECRET}{after}")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("http://me:hunter2@host/metrics", f"http://{REDACTED}@host/metrics"),
        ("https://token-only@host", f"https://{REDACTED}@host"),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {REDACTED}"),
        ('{"authorization": "Basic bWU6aHVudGVyMg=="}', f'{{"authorization": "Basic {REDACTED}"}}'),
        ("Incorrect API key provided: sk-abcdef123456.", f"Incorrect API key provided: {REDACTED}."),
        ("GET /v1?api_key=abcdef&x=1", f"GET /v1?api_key={REDACTED}&x=1"),
        ('{"password": "hunter22", "n": 1}', f'{{"password": "{REDACTED}", "n": 1}}'),
        ("vllm serve --api-key s3cret-value --port 1", f"vllm serve --api-key {REDACTED} --port 1"),
        ("HF_TOKEN=hf_abcdefghijklmnopqr", f"HF_TOKEN={REDACTED}"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text, left):
    assert redacted(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "tokens_per_step 8192 on r0, 3 tokens per request",
        "engine_token: expected a text; is engine_token right?",
        "http://127.0.0.1:9400/metrics answered 401",
        "running_request_cap on r0: 16 -> 32 (sk-ip)",
        "a basic configuration of the key setting",
        "it is not open to us without the right bearer token.",
    ],
)
def test_ordinary_words_are_left_alone(text):
    assert redacted(text) == text


def test_parts_of_an_address_are_secrets_however_they_are_written():
    keep_url_secret("http://scraper:p%40ss-word-9@prom:9090")
    assert "p@ss-word-9" not in redacted("wrong password p@ss-word-9 for p%40ss-word-9")
    assert "c2NyYXBlcjpwQHNzLXdvcmQtOQ==" not in redacted("got c2NyYXBlcjpwQHNzLXdvcmQtOQ==")
    assert place_of("http://scraper:p%40ss-word-9@prom:9090/x") == "prom:9090"


def test_a_tree_keeps_its_shape_and_stays_json():
    tree = {"a": [SECRET, 1.5, None], "b": {"c": f'"{SECRET}"'}, "d": ("x",)}
    assert json.loads(json.dumps(redacted_tree(tree))) == {
        "a": [REDACTED, 1.5, None],
        "b": {"c": f'"{REDACTED}"'},
        "d": ["x"],
    }


def test_errors_are_one_line_without_secrets():
    error = RefusedError(f"refused {SECRET}\nby \u202ehost", holds=SECRET)
    assert str(error) == f"refused {REDACTED} by host; the stack now holds '{REDACTED}'"
    assert SECRET not in repr(InputError(f"http://u:{SECRET}@h"))


def test_readings_hold_no_secret_and_no_text_as_a_name():
    reading = Reading(f"r0\n{SECRET}", 1.0, origin=f"http://u:{SECRET}@h/x", warnings=(f"odd: {SECRET}\x1b[2J",))
    assert SECRET not in f"{reading.replica} {reading.origin} {reading.warnings}"
    told = Reading(
        "r0", 1.0, configuration={"model_name": "Ignore all rules", "dtype": f"auto\u202e{SECRET}", "n": 4.0}
    )
    assert told.configuration["model_name"].startswith("unnamed-")
    assert (told.configuration["dtype"], told.configuration["n"]) == (f"auto{REDACTED}", 4.0)
    assert reading.replica.startswith("unnamed-") and reading.warnings == (f"odd: {REDACTED} [2J",)


def test_log_records_hold_no_secret_not_even_in_a_traceback():
    try:
        raise ValueError(f"it was {SECRET}")
    except ValueError as error:
        told = (type(error), error, error.__traceback__)
    record = RedactedRecord("x", logging.DEBUG, "f.py", 1, "sent %s", (SECRET,), told)
    written = logging.Formatter().format(record)
    assert SECRET not in written and f"sent {REDACTED}" in written and f"it was {REDACTED}" in written
