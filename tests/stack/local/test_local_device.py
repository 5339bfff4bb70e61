"""Device memory: NVML absent, failing call by call, or there; and what the plugin tells."""

import json
from types import SimpleNamespace

import pytest
from live_pages import NOBODY, configuration_of
from page_server import Page, serving

from stack.clock import WallClock
from stack.local.reading.device import DeviceProbe
from stack.local.reading.nvml import DeviceMemory, NoDevice, Nvml, visible_devices
from stack.reading import Gauge, Reading

GIB = float(1 << 30)


class LibraryError(Exception):
    """What the library raises."""


class Library:
    """NVML as a machine with three devices would have it, the last of which fails."""

    NVMLError = LibraryError

    def __init__(self, absent: bool = False) -> None:
        self._absent = absent

    def nvmlInit(self) -> None:  # noqa: N802
        if self._absent:
            raise LibraryError("NVML Shared Library Not Found")

    def nvmlShutdown(self) -> None:  # noqa: N802
        raise LibraryError("Uninitialized")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetHandleByUUID(self, name: str) -> int:  # noqa: N802
        if name != "GPU-1":
            raise LibraryError("Not Found")
        return 1

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        if handle == 2:
            raise LibraryError("GPU is lost")
        return SimpleNamespace(free=(handle + 1) * GIB, total=80 * GIB)

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "NVIDIA H100"


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (("0",), DeviceMemory(1 * GIB, 80 * GIB)),
        (("0", "GPU-1"), DeviceMemory(3 * GIB, 160 * GIB)),
        (("GPU-9",), NoDevice("Not Found")),
        (None, NoDevice("GPU is lost")),
        ((), NoDevice("no device is visible to it")),
    ],
)
def test_memory_of_the_visible_devices(visible, expected):
    assert Nvml(Library()).memory(visible) == expected


def test_an_absent_library_says_so_and_nothing_raises():
    nvml = Nvml(Library(absent=True))
    assert nvml.problem == "NVML Shared Library Not Found"
    assert nvml.memory(None) == NoDevice("NVML Shared Library Not Found")
    assert nvml.names() == ()
    nvml.close()
    assert Nvml(Library()).names() == ("NVIDIA H100",) * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("0,1", ("0", "1")), (" 2 ", ("2",)), ("", ()), ("0,-1,1", ("0",)), ("GPU-a", ("GPU-a",))],
)
def test_visible_devices_are_those_of_the_replicas_environment(tmp_path, monkeypatch, text, expected):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    configuration = configuration_of(tmp_path, NOBODY, f"{NOBODY}1", f"{NOBODY}2")
    environment = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    engine = configuration.engine.model_copy(update={"environment": {"CUDA_VISIBLE_DEVICES": "7"} if text else {}})
    replica = configuration.replicas[0].model_copy(update={"environment": environment})
    assert visible_devices(configuration.model_copy(update={"engine": engine}), replica) == expected


def probed(tmp_path, memory: dict[str, object], library: Library) -> tuple[list[Reading], dict[str, str]]:
    """A reading of r1 after one look, and the reasons."""
    with serving({"/flashvector/memory": lambda: Page((json.dumps(memory).encode(),))}) as server:
        probe = DeviceProbe(configuration_of(tmp_path, server.url, f"{NOBODY}1", NOBODY), WallClock(), Nvml(library))
        probe.look()
        reading = Reading("r1", WallClock().now_s(), {Gauge.RUNNING: 1.0})
        probe.stop()
        return probe.added_to([reading]), dict(probe.reasons)


WORKER = {
    "cuda": True,
    "device_free_bytes": 5,
    "device_total_bytes": 50,
    "inactive_split_bytes": 3,
    "reserved_bytes": 12,
}


def test_fragmentation_comes_from_the_plugin_and_bytes_from_nvml(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (reading,), reasons = probed(tmp_path, {"workers": [WORKER, WORKER]}, Library())
    assert reading.gauges == {
        Gauge.RUNNING: 1.0,
        Gauge.DEVICE_FREE_BYTES: GIB,
        Gauge.DEVICE_TOTAL_BYTES: 80 * GIB,
        Gauge.FRAGMENTATION_RATIO: 0.25,
    }
    assert reasons == {}


def test_where_nvml_is_not_the_plugins_bytes_serve(tmp_path):
    (reading,), reasons = probed(tmp_path, {"workers": [WORKER, WORKER]}, Library(absent=True))
    assert (reading.gauges[Gauge.DEVICE_FREE_BYTES], reading.gauges[Gauge.DEVICE_TOTAL_BYTES]) == (10.0, 100.0)
    assert list(reasons) == ["r2"]


@pytest.mark.parametrize(
    "memory",
    [
        {"workers": [{"cuda": False, "reason": "no CUDA device visible to torch"}]},
        {"workers": "many"},
        {"workers": [{"cuda": True, "reserved_bytes": "x"}]},
        {},
    ],
)
def test_without_a_device_there_are_no_figures_but_a_reason(tmp_path, memory):
    (reading,), reasons = probed(tmp_path, memory, Library(absent=True))
    assert reading.gauges == {Gauge.RUNNING: 1.0}
    assert reasons["r1"] == "no device figures: NVML Shared Library Not Found"
