"""Every client of a stack against servers that are silent, refuse, or say our secrets back."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import pytest
from echoing import CANARIES, UNREACHABLE, Echoes, echoing, leaked_of_stack

from stack.clock import WallClock
from stack.errors import FlashVectorError
from stack.local.configuration import LocalStack
from stack.local.engine.client import EngineClient
from stack.local.reading.engine_facts import EngineFacts
from stack.local.reading.history import NoPast, Prometheus
from stack.local.reading.metric_contract import check
from stack.redaction import RedactedRecord, keep_url_secret
from stack.scrape import scraped
from stack.source import snapshot_from

STATUSES = (None, 200, 401, 403, 500)


@pytest.fixture(autouse=True)
def _held():
    """As where `fetched` was given it once: the server says every secret back, whoever asks."""
    keep_url_secret(f"http://look:{CANARIES['metrics']}@host")


@contextmanager
def stack_of(status, tmp_path) -> Iterator[tuple[Echoes, LocalStack]]:
    if status is None:
        yield UNREACHABLE, LocalStack.model_validate(UNREACHABLE.document(tmp_path))
        return
    with echoing(status) as echoes:
        yield echoes, LocalStack.model_validate(echoes.document(tmp_path))


@pytest.fixture
def log(caplog):
    former = logging.getLogRecordFactory()
    logging.setLogRecordFactory(RedactedRecord)
    with caplog.at_level(logging.DEBUG):
        yield caplog
    logging.setLogRecordFactory(former)


def said(call) -> str:
    """What a call that must not work says."""
    with pytest.raises(FlashVectorError) as caught:
        call()
    return f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize("status", STATUSES)
def test_an_engine_that_says_our_token_back(status, tmp_path, log):
    with stack_of(status, tmp_path) as (_, stack):
        for route in ("limits", "memory"):
            with closing(EngineClient.of(stack, "r1", writes=True)) as client:
                told = said(getattr(client, route)) if status != 200 else ""
                changed = said(lambda client=client: client.change_limits({"max_running": 1})) if status != 200 else ""
            assert not leaked_of_stack(told + changed)
        with httpx.Client() as client:
            page = EngineFacts(stack, stack.replica("r1"), client).limits()
        assert (status == 200) is not bool(page.problem)
        assert not leaked_of_stack(page.problem)
    assert not leaked_of_stack(log.text)


@pytest.mark.parametrize("status", STATUSES)
def test_exporters_and_prometheus_behind_a_password(status, tmp_path, log):
    with stack_of(status, tmp_path) as (echoes, stack):
        address = f"http://look:{CANARIES['metrics']}@{echoes.gateway}/metrics"
        told = said(lambda: scraped(address, WallClock())) + said(lambda: snapshot_from([address], interval_s=0.1))
        assert echoes.gateway in told and not leaked_of_stack(told)
        with closing(Prometheus(stack)) as prometheus:
            past = prometheus.between(0.0, 60.0)
        assert isinstance(past, NoPast) and echoes.history in past.reason and not leaked_of_stack(past.reason)
        contract = str(check(stack, WallClock()))
        assert "r1" in contract and not leaked_of_stack(contract)
    assert not leaked_of_stack(log.text)


def test_a_stack_does_not_show_its_secrets_when_it_is_refused(tmp_path):
    for wrong in (
        {"engine_token": [CANARIES["engine_token"]]},
        {"history": {"url": f"ftp://u:{CANARIES['history']}@h"}},
    ):
        with pytest.raises(ValueError) as caught:
            LocalStack.model_validate(UNREACHABLE.document(tmp_path) | wrong)
        assert not leaked_of_stack(str(FlashVectorError(caught.value.errors()[0]["msg"])))
