"""Local stacks of small engines on free ports, and waiting for what happens in other processes."""

import os
import socket
import sys
import time
from pathlib import Path

from stack.local.configuration import LocalStack

ENGINE = Path(__file__).with_name("small_engine.py")


def free_ports(count):
    """Ports that nobody listens on, each another: they are held until all are known."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def small_stack(folder, replicas=2, whole=False, **engine):
    """Replicas only, or (`whole`) with HAProxy and Prometheus of our own."""
    gateway, metrics, history, *ports = free_ports(replicas + 3)
    named = [{"name": f"r{number}", "url": f"http://127.0.0.1:{port}"} for number, port in enumerate(ports, start=1)]
    return LocalStack.model_validate(
        {
            "run_folder": folder / "run",
            "engine": {
                "command": (sys.executable, str(ENGINE)),
                "model": "small",
                "profiles": {"default": (), "eager": ("--refuse",), "no_speculation": ()},
                "ready_s": 10.0,
                "drain_s": 0.5,
                **engine,
            },
            "replicas": named,
            "gateway": {
                "url": f"http://127.0.0.1:{gateway}",
                "metrics_url": f"http://127.0.0.1:{metrics}",
                "managed": whole,
            },
            "history": {"url": f"http://127.0.0.1:{history}", "scrape_interval_s": 1.0} if whole else None,
        }
    )


def soon(holds, within_s=8.0):
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s, f"not so within {within_s} s"
        time.sleep(0.02)


def lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def environment():
    return dict(os.environ)
