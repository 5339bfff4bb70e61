"""Shared by all tests: one tiny model configuration, quiet vLLM, and an engine for each kind of scheduler."""

import json
import os
from pathlib import Path

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_PLUGINS="")

import pytest
from doors_app import WAYS, app_with_doors
from fake_engine import MODEL, Engine, Setup
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import init_none_hash

KINDS = {"sync": (False, 0), "async": (True, 1), "async class, one step at a time": (True, 0)}


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    init_none_hash(sha256)
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(MODEL))
    return folder


@pytest.fixture(params=KINDS)
def engine(request, model):
    """Makes an engine of each kind: `engine(cap=16, ...)`."""
    asynchronous, lag = KINDS[request.param]
    return lambda **switches: Engine(Setup(**switches), model, asynchronous, lag)


@pytest.fixture(params=WAYS)
def app(request, model):
    """An app with the doors, hung in each way."""
    return app_with_doors(request.param, model)
