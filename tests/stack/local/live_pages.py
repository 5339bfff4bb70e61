"""Two engines and a gateway as captured metric pages behind real servers, and the configuration that names them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from page_server import Page, PageServer, captured, serving, text

from stack.clock import WallClock
from stack.local.configuration import LocalStack

NOBODY = "http://127.0.0.1:9"


class ShiftedClock(WallClock):
    """Wall time that a test can move on, so that nobody waits for things to grow old."""

    def __init__(self) -> None:
        self.shift_s = 0.0

    def now_s(self) -> float:
        return super().now_s() + self.shift_s


@dataclass
class LivePages:
    r1: PageServer
    r2: PageServer
    gateway: PageServer
    configuration: LocalStack


def configuration_of(
    folder: Path, r1: str, r2: str, gateway: str, history: str | None = None, interval_s: float = 0.2
) -> LocalStack:
    document = {
        "run_folder": str(folder),
        "engine": {"command": ["vllm"], "model": "smolkv"},
        "replicas": [{"name": "r1", "url": r1}, {"name": "r2", "url": r2}],
        "gateway": {"url": "http://127.0.0.1:8", "metrics_url": gateway},
    }
    if history is not None:
        document["history"] = {"url": history, "scrape_interval_s": interval_s}
    return LocalStack.model_validate(document)


def table_of(run_folder: str, r1: str, r2: str, gateway: str, more: str = "") -> str:
    """The same as a configuration file has it; `more` are lines of its [stack] table."""
    return f"""
[stack]
run_folder = "{run_folder}"
{more}
[stack.engine]
command = ["vllm"]
model = "smolkv"

[[stack.replicas]]
name = "r1"
url = "{r1}"

[[stack.replicas]]
name = "r2"
url = "{r2}"

[stack.gateway]
url = "http://127.0.0.1:8"
metrics_url = "{gateway}"
"""


class Moving:
    """An engine that goes from one captured moment to a later one after the first answer."""

    def __init__(self) -> None:
        self.answers = 0

    def __call__(self) -> Page:
        self.answers += 1
        return Page((captured("kvfull_preempt_drain" if self.answers == 1 else "kvfull_preempt"),))


@contextmanager
def live_pages(folder: Path, history: str | None = None) -> Iterator[LivePages]:
    with ExitStack() as opened:
        r1 = opened.enter_context(serving({"/metrics": Moving()}))
        r2 = opened.enter_context(serving({"/metrics": text(captured("steady_c4"))}))
        gateway = opened.enter_context(serving({"/metrics": text(captured("haproxy_exporter"))}))
        yield LivePages(r1, r2, gateway, configuration_of(folder, r1.url, r2.url, gateway.url, history))
