"""The execution profile a replica was last started with; it outlives all of us."""

from pathlib import Path

from stack.errors import InputError
from stack.local.configuration import DEFAULT_PROFILE, Engine
from stack.local.processes.run_files import write_whole


class ProfileFile:
    """One replica's profile.

    Args:
        folder: the run folder.
        replica: the replica's name.
        engine: says which profiles there are.
    """

    def __init__(self, folder: Path, replica: str, engine: Engine) -> None:
        self._path, self._replica, self._engine = folder / f"{replica}.profile", replica, engine

    def read(self) -> str:
        """The profile in force.

        Raises:
            InputError: the configuration no longer has it.
        """
        try:
            name = self._path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return DEFAULT_PROFILE
        return self.known(name)

    def write(self, name: str) -> None:
        """Choose the profile of the next start."""
        write_whole(self._path, f"{self.known(name)}\n")

    def known(self, name: str) -> str:
        """The name itself.

        Raises:
            InputError: the engine has no such profile.
        """
        if name not in self._engine.profiles:
            found = ", ".join(self._engine.profiles)
            raise InputError(f"{self._replica}: no execution profile {name!r}; the configuration has {found}")
        return name
