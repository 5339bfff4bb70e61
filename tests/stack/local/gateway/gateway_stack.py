"""A real HAProxy in front of small engines, for tests."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from served_engine import Engine

from stack.errors import UnreachableError
from stack.local.configuration import LocalStack
from stack.local.gateway.control import GatewayControl
from stack.local.gateway.files import write_files
from stack.local.gateway.held import held
from stack.local.gateway.launch import check, command
from stack.local.gateway.values import Start

PATH = "/v1/chat/completions"


def free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def configuration_for(folder: Path, names: Sequence[str] = ("r1", "r2"), **gateway: float) -> LocalStack:
    ports = [f"http://127.0.0.1:{port}" for port in free_ports(len(names) + 2)]
    return LocalStack.model_validate(
        {
            "run_folder": folder,
            "engine": {"command": ["vllm", "serve", "x"], "model": "x"},
            "replicas": [{"name": name, "url": url} for name, url in zip(names, ports[2:], strict=True)],
            "gateway": {"url": ports[0], "metrics_url": ports[1], **gateway},
        }
    )


@dataclass
class Answer:
    status: int
    port: int | None = None
    first_s: float = 0.0
    total_s: float = 0.0
    tokens: int = 0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Running:
    configuration: LocalStack
    control: GatewayControl
    engines: dict[str, Engine]
    process: subprocess.Popen[bytes]

    def send(
        self, n: int, *, headers: dict[str, str] | None = None, body: str = "{}", gap_s: float = 0.0
    ) -> list[Answer]:
        """n requests, one after another gap_s apart but not waiting for each other."""
        return self.send_each([(headers or {}, body)] * n, gap_s=gap_s)

    def send_each(self, requests: Sequence[tuple[dict[str, str], str]], *, gap_s: float = 0.0) -> list[Answer]:
        async def all_of_them() -> list[Answer]:
            tasks = []
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
                for headers, body in requests:
                    tasks.append(asyncio.ensure_future(self._sent(client, headers, body)))
                    await asyncio.sleep(gap_s)
                return list(await asyncio.gather(*tasks))

        return asyncio.run(all_of_them())

    async def _sent(self, client: httpx.AsyncClient, headers: dict[str, str], body: str) -> Answer:
        start_s = time.monotonic()
        url = self.configuration.gateway.url + PATH
        async with client.stream("POST", url, content=body, headers=headers) as reply:
            answer = Answer(reply.status_code, headers=dict(reply.headers))
            try:
                async for line in reply.aiter_lines():
                    if not line.startswith("data: "):
                        continue
                    answer.first_s = answer.first_s or time.monotonic() - start_s
                    answer.port, answer.tokens = int(line.split('"port": ')[1].split("}")[0]), answer.tokens + 1
            except httpx.RemoteProtocolError:
                answer.status = -1
            answer.total_s = time.monotonic() - start_s
            return answer

    @contextlib.contextmanager
    def sending(
        self, requests: Sequence[tuple[dict[str, str], str]], *, gap_s: float = 0.0
    ) -> Iterator["Future[list[Answer]]"]:
        """The same in the background; afterwards the engines go on and all answers are awaited."""
        with ThreadPoolExecutor(1) as pool:
            answers = pool.submit(self.send_each, requests, gap_s=gap_s)
            try:
                yield answers
            finally:
                self.pause(False)

    def pause(self, paused: bool = True) -> None:
        for engine in self.engines.values():
            engine.paused = paused

    def shares(self, answers: Sequence[Answer]) -> Counter[str]:
        """Answers per replica."""
        by_port = {engine.port: name for name, engine in self.engines.items()}
        return Counter(by_port[one.port] for one in answers if one.port is not None)

    def in_turn(self, n: int, **keywords: object) -> Counter[str]:
        """n requests, each after the former's end."""
        total: Counter[str] = Counter()
        for _ in range(n):
            total += self.shares(self.send(1, **keywords))  # type: ignore[arg-type]
        return total


def wait_until(what: Callable[[], bool], within_s: float = 20.0) -> float:
    """Seconds until it was so."""
    start_s = time.monotonic()
    while not what():
        assert time.monotonic() - start_s < within_s, "not within the time"
        time.sleep(0.05)
    return time.monotonic() - start_s


def answers_now(configuration: LocalStack) -> bool:
    try:
        held(configuration)
    except UnreachableError:
        return False
    return True


@contextlib.contextmanager
def running(names: Sequence[str] = ("r1", "r2"), start: Start | None = None, **gateway: float) -> Iterator[Running]:
    folder = Path(tempfile.mkdtemp(prefix="fv-"))
    configuration = configuration_for(folder, names, **gateway)
    engines = {replica.name: Engine(replica.port) for replica in configuration.replicas}
    write_files(configuration, start)
    check(configuration)
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen(command(configuration), stdout=log, stderr=log)
    try:
        wait_until(lambda: answers_now(configuration), 20)
        yield Running(configuration, GatewayControl(configuration), engines, process)
    finally:
        process.terminate()
        process.wait(10)
        for engine in engines.values():
            if not engine.dead:
                engine.die()
        shutil.rmtree(folder)
