"""A small real HTTP server whose pages misbehave as a page can."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DATA = Path(__file__).parents[2] / "data"


def captured(name: str) -> bytes:
    return (DATA / f"{name}.prom").read_bytes()


@dataclass(frozen=True)
class Page:
    """What a path answers.

    Attributes:
        pieces: sent one after the other.
        pause_s: before the first piece and between two.
    """

    pieces: tuple[bytes, ...]
    status: int = 200
    pause_s: float = 0.0


@dataclass
class PageServer:
    """Pages by path; others are 404. `calls` counts the requests per path."""

    pages: dict[str, Callable[[], Page]]
    calls: dict[str, int] = field(default_factory=dict)
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address) -> None:
        """A client that hangs up early is what some tests are about."""


def _handler(pages: PageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            pages.calls[path] = pages.calls.get(path, 0) + 1
            page = pages.pages[path]() if path in pages.pages else Page((b"{}",), 404)
            self.send_response(page.status)
            self.end_headers()
            for piece in page.pieces:
                time.sleep(page.pause_s)
                self.wfile.write(piece)
                self.wfile.flush()

        do_POST = do_GET  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


@contextmanager
def serving(pages: dict[str, Callable[[], Page]]) -> Iterator[PageServer]:
    """The pages on a free port of the loopback interface."""
    server = PageServer(pages)
    server.server = _Server(("127.0.0.1", 0), _handler(server))
    threading.Thread(target=server.server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.stop()


def text(body: bytes) -> Callable[[], Page]:
    return lambda: Page((body,))
