"""A server on a real socket that answers the plugin's routes as the plugin does, from a state that tests set."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BOUNDS = {
    "running_request_cap": [1, 32],
    "tokens_per_step": [32, 2048],
    "long_prefill_threshold_tokens": [0, 2048],
    "usable_kv_blocks": [64, 1023],
    "watermark_blocks": [0, 959],
    "speculative_tokens": [0, 0],
}
BOOT = {
    "running_request_cap": 32,
    "tokens_per_step": 2048,
    "long_prefill_threshold_tokens": 0,
    "usable_kv_blocks": 1023,
    "watermark_blocks": 0,
    "speculative_tokens": 0,
}


class ScriptedEngine:
    """State and behaviour of one engine.

    Attributes:
        status, body: what every request is answered with instead, when status is set.
        stubborn: a change is answered with ok and not made.
    """

    def __init__(self) -> None:
        self.limits: dict[str, int] = dict(BOOT)
        self.status, self.body = 0, "{}"
        self.stubborn = self.degraded = False
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self.url = ""

    def state(self) -> dict[str, Any]:
        failure = {"what": "before a step: KeyError: 'x'"} if self.degraded else None
        bounds = {"limits": self.limits, "boot": BOOT, "bounds": BOUNDS}
        return {"ok": True, "adjusted": {}, "degraded": self.degraded, "failure": failure, **bounds}

    def answer(self, method: str, path: str, document: Any, token: str | None) -> tuple[int, str]:
        self.asked.append((method, path, document, token))
        if self.status:
            return self.status, self.body
        if method == "POST" and not self.stubborn:
            self.limits |= document
        return 200, json.dumps(self.state())


@contextmanager
def scripted_engine() -> Iterator[ScriptedEngine]:
    engine = ScriptedEngine()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", None)

        def do_POST(self) -> None:
            self._answer("POST", json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _answer(self, method: str, document: Any) -> None:
            status, body = engine.answer(method, self.path, document, self.headers.get("authorization"))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    engine.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
