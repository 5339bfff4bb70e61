"""The recorded stack: an incident read as if it were live. Nothing can be changed in the past."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stack.catalogue import setting_named
from stack.errors import InputError, RefusedError, UnknownSettingError, UnreachableError
from stack.reading import Reading
from stack.recording import Recording, Settings, read_recording
from stack.setting import Value
from stack.snapshot import FLEET, Snapshot
from stack.window import snapshot_of


class ReplayClock:
    """A clock over the recording: sleeping moves it on at once."""

    def __init__(self, start_s: float) -> None:
        self._now_s = start_s

    def now_s(self) -> float:
        """The moment of the recording that is now."""
        return self._now_s

    def steady_s(self) -> float:
        """The same: nobody sets this clock."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Move on by `seconds`."""
        self._now_s += max(0.0, seconds)


class RecordedStack:
    """Reads a recording up to the clock's now. It never saw the incident's truth."""

    def __init__(self, recording: Recording, clock: ReplayClock) -> None:
        self._readings: Sequence[Reading] = sorted(recording.readings, key=_time_s)
        self._times = [_time_s(reading) for reading in self._readings]
        self._settings = recording.settings
        self._clock = clock

    def snapshot(self, window_s: float) -> Snapshot:
        """Facts over the last `window_s` seconds of the recording up to now.

        Raises:
            UnreachableError: the recording has nothing in that window.
        """
        now_s = self._clock.now_s()
        first = bisect_right(self._times, now_s - window_s - 1e-6)
        seen = self._readings[first : bisect_right(self._times, now_s)]
        if not seen:
            raise UnreachableError(f"the recording has no sample in the {window_s:g} s up to {now_s:.0f} s")
        return snapshot_of(seen, window_s=window_s, now_s=now_s, settings=self._settings)


@dataclass(frozen=True)
class Proposal:
    """A write that was asked for and not done."""

    time_s: float
    setting: str
    target: str
    value: Value


class RecordedControl:
    """Keeps what would have been written, and refuses it."""

    def __init__(self, settings: Settings, clock: ReplayClock) -> None:
        self._settings = settings
        self._clock = clock
        self._proposals: list[Proposal] = []

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The writes asked for so far."""
        return tuple(self._proposals)

    def read(self, setting: str, target: str) -> Value:
        """The recorded value; a value recorded for the fleet holds for each replica.

        Raises:
            UnknownSettingError: no such setting, or nothing recorded for that target.
        """
        name = setting_named(setting).name
        values = self._settings.get(name, {})
        if target not in values and FLEET not in values:
            raise UnknownSettingError(f"the recording has no {name} of {target}")
        return values.get(target, values.get(FLEET, 0.0))

    def write(self, setting: str, target: str, value: Value) -> Value:
        """Note the proposal.

        Raises:
            UnknownSettingError: no such setting, or nothing recorded for that target.
            RefusedError: always; the past cannot be changed.
        """
        held = self.read(setting, target)
        self._proposals.append(Proposal(self._clock.now_s(), setting, target, value))
        raise RefusedError(f"a recording cannot be changed: {setting} of {target} was not set to {value!r}", held)


@dataclass(frozen=True)
class Replay:
    """A recorded stack with its control and its clock, which stands at the recording's end."""

    reader: RecordedStack
    control: RecordedControl
    clock: ReplayClock
    start_s: float
    end_s: float


def replay_of(folder: Path, *, at_start: bool = False) -> Replay:
    """The incident folder as a stack, its clock at the end of the recording or at its start.

    Raises:
        InputError: the folder is not a readable incident.
    """
    recording = read_recording(folder)
    times = [_time_s(reading) for reading in recording.readings]
    clock = ReplayClock(min(times) if at_start else max(times))
    control = RecordedControl(recording.settings, clock)
    return Replay(RecordedStack(recording, clock), control, clock, min(times), max(times))


def _time_s(reading: Reading) -> float:
    if reading.time_s is None:
        raise InputError(f"{reading.replica}: a recorded reading without time")
    return reading.time_s
