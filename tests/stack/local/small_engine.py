"""A program that answers as much of vLLM's API as a supervisor asks for. It has a child, as vLLM has its engine.

usage: small_engine.py [--refuse] [--slow-to-end S] --host HOST --port PORT
--refuse: it says why on its log and ends at once.
"""

import argparse
import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


class State:
    step = 0
    running = 0
    limits: ClassVar = {"running_request_cap": 8}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/flashvector/steps"):
            State.step += 0 if State.running else 1
            return self._say({"running": State.running, "waiting": 0, "step": State.step})
        if self.path == "/flashvector/limits":
            return self._say({"limits": State.limits, "boot": {"running_request_cap": 8}})
        return self._say({"child": CHILD.pid, "arguments": sys.argv[1:]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/wedge":
            State.running = 1
        if self.path == "/flashvector/limits":
            State.limits = State.limits | body
        return self._say({})

    def log_message(self, format, *arguments):
        pass

    def _say(self, document):
        text = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


parser = argparse.ArgumentParser()
parser.add_argument("--refuse", action="store_true")
parser.add_argument("--host")
parser.add_argument("--port", type=int)
arguments = parser.parse_args()
if arguments.refuse:
    sys.stderr.write("ValueError: no such attention backend\n")
    sys.exit(3)
CHILD = subprocess.Popen(["sleep", "120"])
ThreadingHTTPServer((arguments.host, arguments.port), Handler).serve_forever()
