"""A small HTTP server like an engine: slots, a queue, streamed tokens. It can refuse, break off and die."""

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Engine:
    """Change its attributes at any time.

    Attributes:
        first_token_s, token_s, tokens: how it answers a POST; the first token comes after a slot was free.
        status: with another than 200 it answers so at once, a 503 with Retry-After.
        paused: nothing gets its first token.
        drops: close the connection without an answer.
        healthy: answer health checks with 200, otherwise 503.
    """

    port: int
    slots: int = 1000
    first_token_s: float = 0.0
    token_s: float = 0.01
    tokens: int = 3
    status: int = 200
    paused: bool = False
    drops: bool = False
    healthy: bool = True
    asked: list[Asked] = field(default_factory=list)
    most_running: int = 0
    most_batch: int = 0

    def __post_init__(self) -> None:
        self._writers: set[asyncio.StreamWriter] = set()
        self.start()

    @property
    def posts(self) -> list[Asked]:
        return [one for one in self.asked if one.path != "/health"]

    @property
    def dead(self) -> bool:
        return not self._thread.is_alive()

    def start(self) -> None:
        self._loop, ready = asyncio.new_event_loop(), threading.Event()
        self._running, self._batch = 0, 0
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def die(self) -> None:
        """All connections are cut and new ones refused, as after kill -9."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._until_stopped(ready))
        self._loop.close()

    async def _until_stopped(self, ready: threading.Event) -> None:
        self._stop, self._free = asyncio.Event(), asyncio.Condition()
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, backlog=512)
        ready.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._answered(reader, writer):
                    pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        one = Asked(head[0].split()[1], headers, body)
        self.asked.append(one)
        if one.path == "/health":
            writer.write(_plain(200 if self.healthy else 503))
        elif self.drops:
            return False
        elif self.status != 200:
            writer.write(_plain(self.status))
        else:
            await self._generated(one, reader, writer)
        await writer.drain()
        return headers.get("connection", "").lower() != "close"

    async def _generated(self, one: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Stream tokens, and stop when the client leaves, as vLLM does."""
        gone = asyncio.ensure_future(reader.read(1))
        work = asyncio.ensure_future(self._tokens(one, writer))
        try:
            await asyncio.wait({gone, work}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, work):
                task.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)

    async def _tokens(self, one: Asked, writer: asyncio.StreamWriter) -> None:
        async with self._free:
            await self._free.wait_for(lambda: self._running < self.slots)
            self._running += 1
            self._batch += one.headers.get("x-priority") == "batch"
            self.most_running, self.most_batch = (
                max(self.most_running, self._running),
                max(self.most_batch, self._batch),
            )
        try:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            await asyncio.sleep(self.first_token_s)
            while self.paused:
                await asyncio.sleep(0.02)
            for i in range(self.tokens):
                chunk = f'data: {{"token": {i}, "port": {self.port}}}\n\n'.encode()
                writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await writer.drain()
                await asyncio.sleep(self.token_s)
            writer.write(b"0\r\n\r\n")
        finally:
            self._running -= 1
            self._batch -= one.headers.get("x-priority") == "batch"
            async with self._free:
                self._free.notify_all()


def _plain(status: int) -> bytes:
    extra = "retry-after: 7\r\n" if status == 503 else ""
    return f"HTTP/1.1 {status} X\r\ncontent-length: 2\r\n{extra}\r\nok".encode()
