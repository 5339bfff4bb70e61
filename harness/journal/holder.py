"""Who holds a lease: one process of one machine, known again for good."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from stack.local.processes.kernel_process import Identity, identity_of, identity_of_existing

NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True)
class Holder:
    """A process, for others to see whether it still lives.

    Attributes:
        machine: one boot of one kernel and the pid namespace (a container has its own); empty where the kernel does
            not tell, and then nobody can say whether the process lives.
        pid, start_ticks: the process, see stack.local.processes.kernel_process.
    """

    machine: str
    pid: int
    start_ticks: int

    @classmethod
    def here(cls) -> Self:
        """This process."""
        pid = os.getpid()
        if not NAMESPACE.exists():
            return cls("", pid, 0)
        found = identity_of_existing(pid)
        return cls(f"{found.boot_id} {NAMESPACE.readlink()}", pid, found.start_ticks)

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended; False where that cannot be told from here."""
        if not self.machine or self.machine != Holder.here().machine:
            return False
        boot_id = self.machine.partition(" ")[0]
        return identity_of(self.pid) != Identity(self.pid, self.start_ticks, boot_id)

    @property
    def name(self) -> str:
        """The process in words."""
        return f"pid {self.pid}" + ("" if self.machine == Holder.here().machine else " of another machine or container")
