"""Requests whose every answer is counted: what a traffic program that only reports totals cannot show."""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx


@dataclass(frozen=True)
class Answer:
    """One request: HTTP status (0: no answer), tokens asked and got, and what the gateway said of it."""

    status: int
    asked: int
    got: int
    begun_s: float
    ended_s: float
    retry_after: str | None = None
    error: str = ""

    @property
    def whole(self) -> bool:
        return self.status == 200 and self.got == self.asked


@dataclass
class Traffic:
    """What came back so far, by a constant number of users who ask again as soon as they are answered."""

    answers: list[Answer] = field(default_factory=list)
    stop: bool = False

    @property
    def failed(self) -> list[Answer]:
        return [one for one in self.answers if not one.whole]

    def since(self, time_s: float) -> list[Answer]:
        """Those that were asked after `time_s`."""
        return [one for one in self.answers if one.begun_s >= time_s]

    def statuses(self) -> Counter[int]:
        return Counter(one.status for one in self.answers)


@contextmanager
def users(
    url: str,
    count: int,
    *,
    model: str = "smol",
    prompt: tuple[int, int] = (32, 128),
    output: tuple[int, int] = (16, 48),
) -> Iterator[Traffic]:
    """`count` users until the block ends; their last requests are waited for."""
    traffic = Traffic()
    thread = threading.Thread(target=lambda: asyncio.run(_all(traffic, url, count, model, prompt, output)))
    thread.start()
    try:
        yield traffic
    finally:
        traffic.stop = True
        thread.join(180)
    assert not thread.is_alive(), "requests were neither answered nor refused"


async def _all(
    traffic: Traffic, url: str, count: int, model: str, prompt: tuple[int, int], output: tuple[int, int]
) -> None:
    limits = httpx.Limits(max_connections=count, max_keepalive_connections=count)
    async with httpx.AsyncClient(base_url=url, timeout=170.0, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(_one_user(traffic, client, n, model, prompt, output) for n in range(count)))


async def _one_user(
    traffic: Traffic, client: httpx.AsyncClient, seed: int, model: str, prompt: tuple[int, int], output: tuple[int, int]
) -> None:
    rng = random.Random(seed)
    while not traffic.stop:
        answer = await ask(client, model, rng.randint(*prompt), rng.randint(*output), rng)
        traffic.answers.append(answer)
        if answer.status != 200:
            await asyncio.sleep(0.2)


async def ask(client: httpx.AsyncClient, model: str, prompt: int, output: int, rng: random.Random) -> Answer:
    """One request of given lengths."""
    document = {
        "model": model,
        "prompt": [rng.randrange(100, 1000) for _ in range(prompt)],
        "max_tokens": output,
        "ignore_eos": True,
    }
    begun_s = time.time()
    try:
        reply = await client.post("/v1/completions", json=document)
    except httpx.HTTPError as error:
        return Answer(0, output, 0, begun_s, time.time(), error=repr(error))
    got = reply.json()["usage"]["completion_tokens"] if reply.status_code == 200 else 0
    return Answer(reply.status_code, output, got, begun_s, time.time(), reply.headers.get("retry-after"))
