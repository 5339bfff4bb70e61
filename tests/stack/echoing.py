"""Secrets for every place that can hold one, and a server that says back whatever it was sent and every one of them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

CANARIES = {
    "engine_token": "canary-engine-token-a1b2",
    "history": "canary-prometheus-c3d4",
    "gateway": "canary-gateway-e5f6",
    "environment": "canary-hub-token-a7b8",
    "argument": "canary-vllm-key-c9d0",
    "llm": "canary-planner-key-e1f2",
    "llm_address": "canary-proxy-a3b4",
    "metrics": "canary-metrics-c5d6",
}
NOBODY = "127.0.0.1:9"


@dataclass(frozen=True)
class Echoes:
    """Where the four servers listen, as HOST:PORT."""

    engine: str
    gateway: str
    history: str
    llm: str

    def document(self, folder: Path) -> dict:
        """A [stack] table with a secret in each of its slots."""
        return {
            "run_folder": str(folder),
            "engine": {
                "command": ["vllm"],
                "model": "smol",
                "arguments": ["--api-key", CANARIES["argument"]],
                "environment": {"HF_TOKEN": CANARIES["environment"], "VLLM_PLUGINS": "flashvector"},
            },
            "engine_token": CANARIES["engine_token"],
            "replicas": [{"name": "r1", "url": f"http://{self.engine}", "managed": False}],
            "gateway": {
                "url": "http://127.0.0.1:8",
                "metrics_url": f"http://look:{CANARIES['gateway']}@{self.gateway}",
            },
            "history": {"url": f"http://look:{CANARIES['history']}@{self.history}"},
        }


UNREACHABLE = Echoes(NOBODY, "127.0.0.1:10", "127.0.0.1:11", "127.0.0.1:12")


@contextmanager
def echoing(status: int) -> Iterator[Echoes]:
    """Four servers that answer everything with `status`."""
    with ExitStack() as opened:
        yield Echoes(*(opened.enter_context(_serving(status)) for _ in range(4)))


@contextmanager
def _serving(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def _echo(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told = f"{dict(self.headers)} {self.path} {' '.join(CANARIES.values())}"
            body = json.dumps({"errors": {"auth": told}, "error": {"message": told}, "reason": told}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("WWW-Authenticate", told)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _echo  # noqa: N815 - the library's own names

        def log_message(self, *_arguments: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def leaked(text: str) -> list[str]:
    """The slots whose secret stands in `text`."""
    return [slot for slot, secret in CANARIES.items() if secret in text]


def leaked_of_stack(text: str) -> list[str]:
    """The same of a stack alone, which never holds the planner's."""
    return [slot for slot in leaked(text) if not slot.startswith("llm")]
