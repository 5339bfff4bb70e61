"""What the `diagnose` command was pointed at (addresses, scrape files, logs, an incident folder) as one snapshot."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from stack.clock import Clock, WallClock
from stack.document import INCIDENT_FILE
from stack.engine_log import HALF_A_YEAR, looks_like_log, readings_in_log
from stack.errors import InputError
from stack.exposition import readings_in
from stack.metric_line import text_of
from stack.reading import Reading
from stack.recording import read_recording
from stack.scrape import is_address, scraped
from stack.sequence import check_sequence
from stack.snapshot import Snapshot
from stack.window import snapshot_of

DEFAULT_INTERVAL_S = 5.0
MAX_FILE_BYTES = 256 * 1024 * 1024


def snapshot_from(sources: Sequence[str], *, interval_s: float | None = None, clock: Clock | None = None) -> Snapshot:
    """The snapshot behind `sources`, all of one kind, told apart by their content.

    Args:
        sources: /metrics addresses (each is scraped twice); or Prometheus text files, one per scrape, in time order;
            or vLLM log files; or one incident folder.
        interval_s: seconds between the two scrapes of an address (5 by default), or between two files; without it
            files have no known window.
        clock: the time for addresses; the machine's own by default.

    Raises:
        InputError: a source is unusable; the text names it and the place in it.
        UnreachableError: an address did not answer.
    """
    if not sources:
        raise InputError("no source given; expected a /metrics address, files or an incident folder")
    if interval_s is not None and not (math.isfinite(interval_s) and interval_s > 0):
        raise InputError(f"the interval must be a positive number of seconds, not {interval_s:g}")
    addresses = [source for source in sources if is_address(source)]
    if addresses:
        if len(addresses) < len(sources):
            raise InputError(f"{_other(sources, addresses)}: addresses and files cannot be mixed")
        return _from_addresses(addresses, interval_s or DEFAULT_INTERVAL_S, clock or WallClock())
    paths = [Path(source) for source in sources]
    folders = [path for path in paths if path.is_dir()]
    if folders:
        if len(paths) > 1:
            raise InputError(f"{folders[0]}: an incident folder stands alone; {len(paths)} sources were given")
        return _from_folder(folders[0])
    return _from_files(paths, interval_s)


def _other(sources: Sequence[str], addresses: Sequence[str]) -> str:
    return next(source for source in sources if source not in addresses)


def _from_addresses(addresses: Sequence[str], interval_s: float, clock: Clock) -> Snapshot:
    readings = [reading for address in addresses for reading in scraped(address, clock)]
    clock.sleep(interval_s)
    readings += [reading for address in addresses for reading in scraped(address, clock)]
    return snapshot_of(readings, window_s=None, now_s=clock.now_s())


def _from_folder(folder: Path) -> Snapshot:
    if not (folder / INCIDENT_FILE).is_file():
        raise InputError(f"{folder}: expected an incident folder with {INCIDENT_FILE}, which is not there")
    recording = read_recording(folder)
    snapshot = snapshot_of(recording.readings, window_s=recording.window_s, settings=recording.settings)
    if not snapshot.scrapes:
        raise InputError(f"{folder}: none of its samples has a value that can be used")
    return snapshot


def _from_files(paths: Sequence[Path], interval_s: float | None) -> Snapshot:
    texts = {str(path): _text(path) for path in paths}
    if len(texts) < len(paths):
        raise InputError(f"{_repeated(paths)}: given twice; expected one file per scrape")
    logs = [name for name, text in texts.items() if looks_like_log(text)]
    if not logs:
        return _from_scrapes([readings_in(text, name) for name, text in texts.items()], interval_s)
    if len(logs) < len(texts):
        raise InputError(f"{_other(list(texts), logs)}: no vLLM status line; logs and other files cannot be mixed")
    return _from_logs(texts)


def _repeated(paths: Sequence[Path]) -> Path:
    return next(path for place, path in enumerate(paths) if path in paths[:place])


def _from_scrapes(scrapes: Sequence[list[Reading]], interval_s: float | None) -> Snapshot:
    warnings = check_sequence(scrapes)
    window_s = None if interval_s is None or len(scrapes) < 2 else interval_s * (len(scrapes) - 1)
    snapshot = snapshot_of([reading for scrape in scrapes for reading in scrape], window_s=window_s)
    return replace(snapshot, warnings=(*snapshot.warnings, *warnings))


def _from_logs(texts: dict[str, str]) -> Snapshot:
    """Logs that follow one another are one engine's; logs of the same hours are of several, named by their files."""
    logs = [readings_in_log(text, name) for name, text in texts.items()]
    joined = list(logs[0])
    for log in logs[1:]:
        shift_s = _years_between(joined[-1], log[0])
        if _time(log[0]) + shift_s < _time(joined[-1]):
            joined = [
                reading
                for name, text in texts.items()
                for reading in readings_in_log(text, name, replica=Path(name).stem)
            ]
            break
        joined += [replace(reading, time_s=_time(reading) + shift_s) for reading in log]
    return replace(snapshot_of(joined, window_s=None), time_s=None)


def _years_between(before: Reading, after: Reading) -> float:
    """A year where a log's months begin anew."""
    back_s = _time(before) - _time(after)
    return timedelta(days=366).total_seconds() if back_s > HALF_A_YEAR.total_seconds() else 0.0


def _time(reading: Reading) -> float:
    return reading.time_s or 0.0


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: larger than {MAX_FILE_BYTES} bytes; give the part around the trouble")
        return text_of(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
