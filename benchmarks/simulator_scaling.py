"""CPU time per request over replicas and rate: if it stays level, cost grows with the work and not with its square.

Run: python benchmarks/simulator_scaling.py [FIGURE.svg]
Needs numba. About a minute; writes docs/images/simulator_scaling.svg unless told otherwise.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from stack.simulator.speed import speed

RATES_PER_REPLICA_S = (5.0, 12.5, 25.0)
REPLICAS = (1, 2, 4, 8, 16, 32, 64, 128)
REQUESTS = 16_000
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "simulator_scaling.svg"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP_US = 640, 360, 60, 50, 10.0
COLOURS = ("#2a6f97", "#c8553d", "#588157")


def us_per_request(replicas: int, rate_per_replica_s: float) -> float:
    """Microseconds of CPU time per simulated request."""
    rate_per_s = replicas * rate_per_replica_s
    return 1e6 / speed(rate_per_s, replicas, max(20.0, REQUESTS / rate_per_s), compiled=True) / rate_per_s


def place(replicas: int, us: float) -> tuple[float, float]:
    """Where a point stands in the figure; replicas on a logarithmic axis."""
    across = math.log2(replicas) / math.log2(REPLICAS[-1])
    return LEFT + across * (WIDTH - LEFT - 30), HEIGHT - BOTTOM - us / TOP_US * (HEIGHT - BOTTOM - 20)


def figure(lines: Mapping[str, Sequence[float]]) -> str:
    """One line per rate, as SVG."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" ']
    parts += ['font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for us in range(0, int(TOP_US) + 1, 2):
        (x, y), (end, _) = place(1, us), place(REPLICAS[-1], us)
        parts.append(f'<path d="M{x} {y}H{end}" stroke="#ddd"/><text x="{x - 28}" y="{y + 4}">{us}</text>')
    for replicas in REPLICAS:
        x, y = place(replicas, 0)
        parts.append(f'<text x="{x - 6}" y="{y + 18}">{replicas}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}">replicas</text>')
    parts.append(f'<text x="{LEFT - 50}" y="14">CPU time per request, µs</text>')
    for row, ((name, values), colour) in enumerate(zip(lines.items(), COLOURS, strict=True)):
        points = [place(*point) for point in zip(REPLICAS, values, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + 12}" y="{40 + 18 * row}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Print the figures and draw them."""
    lines: dict[str, list[float]] = {}
    print("replicas         ", *(f"{replicas:6d}" for replicas in REPLICAS))
    for rate in RATES_PER_REPLICA_S:
        values = [us_per_request(replicas, rate) for replicas in REPLICAS]
        lines[f"{rate:g} req/s each"] = values
        print(f"{rate:4g} req/s each, us", *(f"{value:6.2f}" for value in values))
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(figure(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
