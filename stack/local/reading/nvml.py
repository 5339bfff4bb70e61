"""Device memory through NVML, NVIDIA's own library; absent on a machine without its driver."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from stack.local.configuration import LocalStack, Replica

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of all devices of a replica, in bytes."""

    free_bytes: float
    total_bytes: float


@dataclass(frozen=True)
class NoDevice:
    """There is no figure, and why."""

    reason: str


class Nvml:
    """NVML, opened once. Nothing here raises: each call can fail by itself, and says why.

    Args:
        library: `pynvml`, or what stands in for it.
    """

    def __init__(self, library: Any = pynvml) -> None:  # noqa: ANN401
        self._library = library
        self._problem = self._tried(library.nvmlInit)

    @property
    def problem(self) -> str | None:
        """Why there are no figures at all; None where NVML works."""
        return self._problem.reason if isinstance(self._problem, NoDevice) else None

    def names(self) -> tuple[str, ...]:
        """The devices' product names, as many as can be read."""
        handles = self._handles(None)
        named = () if isinstance(handles, NoDevice) else [self._tried(_name, self._library, one) for one in handles]
        return tuple(name for name in named if isinstance(name, str))

    def memory(self, visible: Sequence[str] | None) -> DeviceMemory | NoDevice:
        """Free and total bytes over the `visible` devices: indices in NVML's order (PCI bus) or UUIDs; None for all.

        CUDA counts in that order too where the devices are alike or CUDA_DEVICE_ORDER is PCI_BUS_ID.
        """
        handles = self._handles(visible)
        if isinstance(handles, NoDevice):
            return handles
        free_bytes = total_bytes = 0.0
        for handle in handles:
            memory = self._tried(self._library.nvmlDeviceGetMemoryInfo, handle)
            if isinstance(memory, NoDevice):
                return memory
            free_bytes, total_bytes = free_bytes + float(memory.free), total_bytes + float(memory.total)
        return DeviceMemory(free_bytes, total_bytes)

    def close(self) -> None:
        """Give the library back."""
        if self.problem is None:
            self._tried(self._library.nvmlShutdown)

    def _handles(self, visible: Sequence[str] | None) -> list[Any] | NoDevice:
        if isinstance(self._problem, NoDevice):
            return self._problem
        if visible is None:
            count = self._tried(self._library.nvmlDeviceGetCount)
            if isinstance(count, NoDevice):
                return count
            visible = [str(index) for index in range(count)]
        if not visible:
            return NoDevice("no device is visible to it")
        handles = [self._tried(_handle, self._library, one) for one in visible]
        return next((one for one in handles if isinstance(one, NoDevice)), handles)

    def _tried(self, call: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """What the call gives, or a `NoDevice`."""
        try:
            return call(*arguments)
        except (self._library.NVMLError, ValueError, OSError) as error:
            return NoDevice(str(error))


def visible_devices(configuration: LocalStack, replica: Replica) -> tuple[str, ...] | None:
    """The devices a replica sees, by CUDA_VISIBLE_DEVICES of its environment; None for all.

    As CUDA does, the list ends at the first entry that cannot be one.
    """
    environment = {**os.environ, **configuration.engine.environment, **replica.environment}
    return _listed(environment)


def _listed(environment: Mapping[str, str]) -> tuple[str, ...] | None:
    if VISIBLE not in environment:
        return None
    found: list[str] = []
    for part in environment[VISIBLE].split(","):
        name = part.strip()
        if not name or name.startswith("-"):
            break
        found.append(name)
    return tuple(found)


def _handle(library: Any, name: str) -> Any:  # noqa: ANN401
    if name.isdecimal():
        return library.nvmlDeviceGetHandleByIndex(int(name))
    return library.nvmlDeviceGetHandleByUUID(name)


def _name(library: Any, handle: Any) -> str:  # noqa: ANN401
    name = library.nvmlDeviceGetName(handle)
    return name.decode() if isinstance(name, bytes) else str(name)
