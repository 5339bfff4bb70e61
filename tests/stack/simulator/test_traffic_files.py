"""Public trace formats are read, and what is not one is refused with its place."""

import json
from pathlib import Path

import numpy as np
import pytest

from stack.errors import InputError
from stack.simulator.load.files import read_traffic

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = HEADER + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
TRACES = Path(__file__).parents[4] / "shared" / "traces"


def line(**changes: object) -> str:
    record = {"timestamp": 0, "input_length": 1300, "output_length": 5, "hash_ids": [7, 8, 9]} | changes
    return json.dumps(record) + "\n"


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_azure(tmp_path: Path):
    traffic = read_traffic(written(tmp_path, "a.csv", AZURE))
    assert traffic.arrival_s == pytest.approx([0.0, 4.314579], abs=1e-6)
    assert traffic.prompt_tokens.tolist() == [374, 396]
    assert traffic.output_tokens.tolist() == [44, 109]
    assert traffic.session.tolist() == [-1, -1]


def test_azure_columns_may_stand_in_another_order(tmp_path: Path):
    text = "id,GeneratedTokens,ContextTokens,TIMESTAMP\nx,44,374,2023-11-16 18:15:46\n"
    traffic = read_traffic(written(tmp_path, "a.csv", text))
    assert (traffic.prompt_tokens[0], traffic.output_tokens[0]) == (374, 44)


def test_mooncake_shares_full_blocks_only(tmp_path: Path):
    text = line() + line(timestamp=1500, input_length=1024, hash_ids=[7, 8, 12])
    traffic = read_traffic(written(tmp_path, "m.jsonl", text))
    assert traffic.arrival_s.tolist() == [0.0, 1.5]
    assert traffic.chain_length.tolist() == [2, 2]
    chains = [traffic.chains[start : start + 2].tolist() for start in traffic.chain_start]
    assert chains == [[0, 1], [0, 1]]
    assert traffic.session.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "", "line 1: expected the columns TIMESTAMP"),
        ("a.csv", HEADER, "expected at least one request"),
        ("a.csv", "TIME,Context,Generated\n1,2,3\n", r"found \['TIME', 'Context', 'Generated'\]"),
        ("a.csv", AZURE + "2023-11-16 18:15:51,3\n", "line 4: expected 3 fields, found 2"),
        ("a.csv", AZURE + "2023-11-16 18:15:51,-3,4\n", "line 4: ContextTokens must lie in 0"),
        ("a.csv", AZURE + "2023-11-16 18:15:51,3,x\n", "line 4: GeneratedTokens must be a whole number"),
        ("a.csv", AZURE + "2023-11-16 18:15:51,3,4.5\n", "line 4: GeneratedTokens must be a whole number"),
        ("a.csv", AZURE + "2023-11-16 18:15:51,99999999999,4\n", "line 4: ContextTokens must lie in"),
        ("a.csv", AZURE + "yesterday,3,4\n", "line 4: TIMESTAMP must look like"),
        ("a.csv", AZURE + "2023-11-16 18:15:45,3,4\n", "line 4: times must not go back"),
        ("a.csv", b"\xff\xfe\x00junk", "expected UTF-8 text"),
        ("a.csv", AZURE + "\x00,\x00,\x00\n", "line 4: "),
        ("m.jsonl", "", "expected at least one request"),
        ("m.jsonl", line() + "{not json\n", "line 2: not JSON"),
        ("m.jsonl", line() + "[1]\n", "line 2: expected a JSON object"),
        ("m.jsonl", line(timestamp=-1), "line 1: timestamp must be milliseconds"),
        ("m.jsonl", line(timestamp="soon"), "line 1: timestamp must be milliseconds"),
        ("m.jsonl", line().replace("0,", "NaN,", 1), "line 1: timestamp must be milliseconds"),
        ("m.jsonl", line(timestamp=5) + line(timestamp=4), "line 2: times must not go back"),
        ("m.jsonl", line(input_length=-5), "line 1: input_length must lie in"),
        ("m.jsonl", line(output_length=None), "line 1: output_length must be a whole number"),
        ("m.jsonl", line(hash_ids="abc"), "line 1: hash_ids must be a list"),
        ("m.jsonl", line(hash_ids=[1, None]), "line 1: hash_ids must be a list"),
        ("t.txt", "x", "expected a .csv"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str | bytes, says: str):
    path = written(tmp_path, name, text)
    with pytest.raises(InputError, match=says) as caught:
        read_traffic(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        read_traffic(tmp_path / "absent.csv")


@pytest.mark.skipif(not TRACES.parent.is_dir(), reason="the shared public traces are absent")
@pytest.mark.parametrize(
    ("name", "requests", "chunks"),
    [("azure2023_code.csv", 8_819, 0), ("azure2023_conv.csv", 19_366, 0), ("mooncake_conversation.jsonl", 12_031, 1)],
)
def test_public_traces(name: str, requests: int, chunks: int):
    traffic = read_traffic(TRACES / name)
    assert len(traffic) == requests
    assert (traffic.chunks > 0) == bool(chunks)
    assert 3_300 < traffic.duration_s < 3_600
    assert np.all(traffic.prompt_tokens >= 1)
