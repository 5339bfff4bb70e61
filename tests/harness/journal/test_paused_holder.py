"""A holder stopped for longer than its lease: another takes over, and the first writes nothing when it wakes."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from harness.journal.audit import audit
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import State
from harness.journal.store import open_store

HOLDER = Path(__file__).with_name("paused_holder.py")
LENGTH_S = 1.5


@pytest.mark.parametrize(
    ("pause", "left"),
    [("before the permit", State.APPROVED), ("before the write", State.ARMED), ("before the undo", None)],
)
def test_a_holder_that_was_stopped_wakes_up_harmless(tmp_path: Path, pause: str, left: State | None):
    path, written = tmp_path / "journal.db", tmp_path / "written"
    command = [sys.executable, str(HOLDER), str(path), str(written), pause, str(LENGTH_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "pausing\n", holder.stderr.read()
            while Path(f"/proc/{holder.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                time.sleep(0.01)
            before = written.read_text()
            with closing(open_store(path)) as store:
                lease = Lease.take(store, "stack", length_s=LENGTH_S)
                assert lease.epoch == 2
                (record,) = Journal(store).records()
                assert record.state is (left or State.ROLLING_BACK)
                lines = len(Journal(store).events())
                os.kill(holder.pid, signal.SIGCONT)
                _, errors = holder.communicate(timeout=60)
                assert "LeaseLostError" in errors and "epoch 1" in errors.splitlines()[-1]
                assert written.read_text() == before
                assert len(Journal(store).events()) == lines and audit(store).broken is None
        finally:
            holder.kill()
