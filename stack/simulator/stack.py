"""The simulated stack behind the same contracts as a real one: a reader, a control and a clock in virtual time.

The three share one simulation, but a reader offers no way to the control or to what is hidden.
"""

from collections import deque
from collections.abc import Callable

from stack.errors import UnreachableError
from stack.reading import Reading
from stack.setting import Value
from stack.simulator.simulation import EPOCH_S, Simulation
from stack.snapshot import Snapshot
from stack.window import snapshot_of

SCRAPE_INTERVAL_S = 5.0
KEPT_S = 1_800.0
"""How far back readings are kept."""


class SimulatedReader:
    """Snapshots from readings taken every few virtual seconds."""

    def __init__(self, settings: Callable[[], dict[str, dict[str, Value]]], kept: int) -> None:
        self._settings = settings
        self._scrapes: deque[tuple[float, list[Reading]]] = deque(maxlen=kept)

    def snapshot(self, window_s: float) -> Snapshot:
        """Facts over the last `window_s` seconds; see `stack.reader.StackReader.snapshot`."""
        if not self._scrapes:
            raise UnreachableError("the simulated stack has not been scraped yet")
        now_s = self._scrapes[-1][0]
        chosen = [scrape for time_s, scrape in self._scrapes if time_s >= now_s - window_s - 1e-6]
        return snapshot_of(
            [reading for scrape in chosen for reading in scrape],
            window_s=window_s,
            now_s=now_s,
            settings=self._settings(),
        )

    def _take(self, time_s: float, scrape: list[Reading]) -> None:
        self._scrapes.append((time_s, scrape))


class SimulatedControl:
    """Writes settings of the simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def read(self, setting: str, target: str) -> Value:
        """The value in force; see `stack.control.StackControl.read`."""
        return self._simulation.read(setting, target)

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Set the value and return what was read back; see `stack.control.StackControl.write`."""
        return self._simulation.write(setting, target, value)


class VirtualClock:
    """Virtual time, which passes only when someone sleeps."""

    def __init__(self, now_s: Callable[[], float], advance: Callable[[float], None]) -> None:
        self._now_s, self._advance = now_s, advance

    def now_s(self) -> float:
        """The present virtual time on the readings' clock."""
        return EPOCH_S + self._now_s()

    def steady_s(self) -> float:
        """Virtual seconds since the start."""
        return self._now_s()

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        self._advance(seconds)


class SimulatedStack:
    """A simulation with its reader, control and clock; whoever holds this object lets time pass.

    Attributes:
        reader: read side.
        control: write side.
        clock: virtual time.
        simulation: the truth, for scoring a run after it.
    """

    def __init__(self, simulation: Simulation, *, scrape_interval_s: float = SCRAPE_INTERVAL_S) -> None:
        self.simulation = simulation
        self.reader = SimulatedReader(simulation.settings, kept=int(KEPT_S / scrape_interval_s) + 1)
        self.control = SimulatedControl(simulation)
        self.clock = VirtualClock(lambda: simulation.now_s, self.advance)
        self._interval_s = scrape_interval_s
        self._next_scrape_s = simulation.now_s
        self._scrape()

    def advance(self, seconds: float) -> None:
        """Let `seconds` of virtual time pass, scraping on the way."""
        until_s = self.simulation.now_s + max(0.0, seconds)
        while self._next_scrape_s <= until_s:
            self.simulation.advance(self._next_scrape_s)
            self._scrape()
        self.simulation.advance(until_s)

    def _scrape(self) -> None:
        self.reader._take(EPOCH_S + self.simulation.now_s, self.simulation.readings())
        self._next_scrape_s += self._interval_s
