"""What the gateway adds to a request's TTFT, in milliseconds: through HAProxy less direct, request by request in turns.

.venv/bin/python benchmarks/gateway_overhead.py [--url http://127.0.0.1:8111 --model NAME] [--requests 300]
Without --url the engine is a small server in this process that answers at once, so that nothing hides the difference.
Needs HAProxy. The target is a median under 2 ms.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "stack" / "local" / "gateway"))

from gateway_stack import PATH, answers_now, free_ports, wait_until
from served_engine import Engine

from stack.local.configuration import LocalStack
from stack.local.gateway.control import GatewayControl
from stack.local.gateway.files import write_files
from stack.local.gateway.launch import command
from stack.snapshot import FLEET

CASES = (("round_robin", 1_000), ("session_hash", 1_000), ("prefix_aware", 1_000), ("prefix_aware", 32_000))
"""Routing policy and bytes of prompt. The Lua chooses in the last two."""
TARGET_MS = 2.0
WARM = 20


def ttft_ms(client: httpx.Client, address: str, body: str) -> float:
    """From sending the request to the first bytes of the answer's body."""
    start_s = time.perf_counter()
    with client.stream("POST", address + PATH, content=body, headers={"x-session-id": "one"}) as answer:
        answer.raise_for_status()
        parts = answer.iter_raw()
        next(parts)
        first_s = time.perf_counter()
        for _ in parts:
            pass
    return (first_s - start_s) * 1000


def measured(direct: str, gateway: str, body: str, requests: int) -> tuple[list[float], list[float]]:
    """TTFT of each request, direct and through the gateway."""
    found: tuple[list[float], list[float]] = ([], [])
    with httpx.Client(timeout=120, trust_env=False) as client:
        for _ in range(requests + WARM):
            for address, times in zip((direct, gateway), found, strict=True):
                times.append(ttft_ms(client, address, body))
    return found[0][WARM:], found[1][WARM:]


def compare(configuration: LocalStack, model: str, requests: int) -> float:
    """Print one line per case and return the largest median difference in milliseconds."""
    control, most_ms = GatewayControl(configuration), 0.0
    direct, gateway = configuration.replicas[0].url, configuration.gateway.url
    print("policy        prompt bytes  direct p50 ms  gateway p50 ms  added p50 ms  direct p95  gateway p95")
    for policy, length in CASES:
        control.write("routing_policy", FLEET, policy)
        message = {"role": "user", "content": "word " * (length // 5)}
        body = json.dumps({"model": model, "messages": [message], "max_tokens": 2, "stream": True})
        times = measured(direct, gateway, body, requests)
        middle = [statistics.median(one) for one in times]
        tail = [statistics.quantiles(one, n=20)[-1] for one in times]
        added_ms = middle[1] - middle[0]
        most_ms = max(most_ms, added_ms)
        print(f"{policy:14}{length:12}{middle[0]:15.2f}{middle[1]:16.2f}{added_ms:14.2f}{tail[0]:12.2f}{tail[1]:13.2f}")
    return most_ms


def main() -> None:
    """Start HAProxy before the engine, measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--url", help="an engine that runs; without it a small server of our own")
    arguments.add_argument("--model", default="x")
    arguments.add_argument("--requests", type=int, default=300)
    given = arguments.parse_args()
    ports = free_ports(3)
    engine = None if given.url else Engine(ports[2], token_s=0.0, tokens=2)
    with tempfile.TemporaryDirectory(prefix="fv-") as folder:
        configuration = LocalStack.model_validate(
            {
                "run_folder": folder,
                "engine": {"command": ["vllm"], "model": given.model},
                "replicas": [{"name": "r1", "url": given.url or f"http://127.0.0.1:{ports[2]}"}],
                "gateway": {"url": f"http://127.0.0.1:{ports[0]}", "metrics_url": f"http://127.0.0.1:{ports[1]}"},
            }
        )
        write_files(configuration)
        process = subprocess.Popen(command(configuration), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: answers_now(configuration))
            most_ms = compare(configuration, given.model, given.requests)
        finally:
            process.terminate()
            process.wait(10)
            if engine:
                engine.die()
    print(f"at most {most_ms:.2f} ms at the median; the target is under {TARGET_MS:g} ms")


if __name__ == "__main__":
    main()
