"""The machine as a whole: GPUs that are lost, hang, come back, or were never there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from fakenvml import GPU_IS_LOST, FakeNvml, values

from inferslo.exporters import names
from inferslo.exporters.gpu.device import DeviceSource
from inferslo.exporters.gpu.events import XidSource
from inferslo.exporters.gpu.nvml import NvmlRoot
from inferslo.exporters.reading import (
    ErrorKind,
    FatalSourceError,
    Observation,
    Source,
    SourceError,
)
from inferslo.sidecar.board import Board
from inferslo.sidecar.poller import Poller

Machine = Callable[..., FakeNvml]
READ_ROOT = """
from inferslo.exporters.gpu.events import XidSource
from inferslo.exporters.gpu.nvml import NvmlRoot
from inferslo.exporters.reading import SourceError
root = NvmlRoot(print)
try:
    print(root.observe().facts["driver_version"])
except SourceError as error:
    print(error.kind, error.detail)
    print(root.up_point(False))
"""


class Node:
    """The root source with the sources it started, read one after the other by the test."""

    def __init__(self, expected: int | None = None) -> None:
        self.now = 0.0
        self.sources: list[Source] = []
        self.root = NvmlRoot(
            self.sources.append, expected, interval=5, device_interval=5, clock=lambda: self.now
        )

    @property
    def devices(self) -> list[DeviceSource]:
        return [source for source in self.sources if isinstance(source, DeviceSource)]

    def errors(self) -> dict[tuple[str, ...], float]:
        """As they are published, whatever becomes of the root."""
        (events,) = [source for source in self.sources if isinstance(source, XidSource)]
        got = values(events.observe())
        return {key[1:]: value for key, value in got.items() if key[0] == "errors_total"}

    def read(self) -> dict[tuple[str, ...], float]:
        """One round, 10 s after the last: the root, every GPU, and the root's values after."""
        self.now += 10
        got = values(self.root.observe())
        for device in self.devices:
            try:
                got |= values(device.observe())
            except SourceError as error:
                got["failed:" + error.kind, device.name] = 1
        return got | values(self.root.observe())


def test_a_gpu_that_is_lost_takes_no_other_with_it(machine: Machine) -> None:
    fake, node = machine(8), Node()
    node.read()
    before = node.read()
    assert before["devices_visible",] == before["devices_expected",] == 8

    fake.fail("gpu2", GPU_IS_LOST, "nvmlDeviceGetUtilizationRates")
    lost = node.read()
    assert lost["failed:gpu_lost", "gpu2"] == 1
    assert (lost["devices_visible",], lost["devices_expected",]) == (7, 8)
    assert {key[1] for key in lost if key[0] == "memory_used_bytes"} == set("0134567")
    assert node.errors() == {("2", "15"): 1}

    fake.fail("gpu2", None, "nvmlDeviceGetUtilizationRates")
    node.read()
    back = node.read()
    assert back["devices_visible",] == 8
    assert back["memory_used_bytes", "2"] == before["memory_used_bytes", "2"]
    n = "utilization_moment_n_total"
    assert back[n, "2"] > before[n, "2"]
    assert back[n, "0"] == before[n, "0"] + 3


@pytest.mark.parametrize("code", [2, 999])
def test_other_codes_of_a_lost_gpu(machine: Machine, code: int) -> None:
    fake, node = machine(2), Node()
    fake.fail("gpu1", code)
    for _ in range(8):  # more rounds than `tries`: one GPU of two never ends the process
        node.read()
    got = node.read()
    assert got["devices_visible",] == 1
    assert got["utilization_ratio", "0"] == 0.4


def test_visible_is_unknown_until_every_gpu_had_its_say(machine: Machine) -> None:
    machine(2)
    node = Node()
    got = values(node.root.observe())
    assert got == {("devices_expected",): 2}
    node.devices[0].observe()
    assert ("devices_visible",) not in values(node.root.observe())
    node.devices[1].observe()
    assert values(node.root.observe())["devices_visible",] == 2


def test_the_configured_number_is_what_is_expected(machine: Machine) -> None:
    machine(2)
    got = Node(expected=4).read()
    assert (got["devices_visible",], got["devices_expected",]) == (2, 4)


def test_a_gpu_that_comes_back_under_a_shifted_index_is_not_taken_for_another(
    machine: Machine,
) -> None:
    fake, node = machine(3), Node()
    # GPU 1 is missing at the start, so NVML gives its index to GPU 2.
    fake.put("system", count=2, **{"index:1": 2})
    node.read()
    fake.put("system", count=3, **{"index:1": None})
    fake.fail("gpu0", GPU_IS_LOST)
    node.read()
    fake.fail("gpu0", None)
    node.read()
    got = node.read()
    uuids = {
        point.labels[0]: point.labels[1]
        for device in node.devices
        for point in device.observe().points
        if point.family is names.GPU_INFO
    }
    assert uuids == {"0": "GPU-00000000", "1": "GPU-00000002", "2": "GPU-00000001"}
    assert got["devices_visible",] == 3


def test_a_count_that_no_node_can_have_starts_no_source_and_is_not_expected(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(1)
    node = Node()
    with monkeypatch.context() as broken:
        broken.setattr(pynvml, "nvmlDeviceGetCount", lambda: 100_000)
        with pytest.raises(SourceError, match="100000 GPUs, more than the 256") as error:
            node.read()
    assert error.value.kind is ErrorKind.DRIVER
    assert node.devices == []
    assert node.read()["devices_expected",] == 1


def test_no_gpu_is_a_failed_read(machine: Machine) -> None:
    machine(0)
    with pytest.raises(SourceError, match="NVML finds no GPU") as error:
        Node().root.observe()
    assert error.value.kind is ErrorKind.NO_DEVICE


def test_gpus_that_appear_after_none_was_there_are_read(machine: Machine) -> None:
    fake, node = machine(1), Node()
    fake.put("system", count=0)
    with pytest.raises(SourceError):
        node.read()
    fake.put("system", count=1)
    node.read()
    assert node.read()["devices_visible",] == 1


def test_gpus_that_cannot_be_counted_are_counted_after_a_new_initialisation(
    machine: Machine,
) -> None:
    fake, node = machine(1), Node()
    fake.fail("system", 1, "nvmlDeviceGetCount_v2")
    with pytest.raises(SourceError, match="nvmlDeviceGetCount: NVML code 1"):
        node.read()
    fake.fail("system", None, "nvmlDeviceGetCount_v2")
    node.read()
    assert fake.calls().count("nvmlInitWithFlags system") == 2
    assert node.read()["devices_visible",] == 1


def test_the_errors_that_nvml_fails_with_are_still_told(machine: Machine) -> None:
    fake, node = machine(1), Node()
    node.read()
    assert node.errors() == {}
    fake.fail("system", 18, "nvmlInitWithFlags")
    fake.fail("gpu0", GPU_IS_LOST)
    got = values(node.root.observe())
    with pytest.raises(SourceError):
        node.devices[0].observe()
    node.now += 100
    with pytest.raises(SourceError, match="restart this container"):
        node.root.observe()
    assert ("errors_total",) not in {key[:1] for key in got}
    assert node.errors() == {("", "18"): 1, ("0", "15"): 1}


def test_the_error_of_an_nvml_that_never_was_is_told_too(machine: Machine) -> None:
    machine(1).fail("system", 9, "nvmlInitWithFlags")
    node = Node()
    with pytest.raises(SourceError):
        node.root.observe()
    assert node.errors() == {("", "9"): 1}


def test_a_driver_that_is_not_loaded(machine: Machine) -> None:
    machine(1).fail("system", 9, "nvmlInitWithFlags")
    node = Node()
    with pytest.raises(SourceError, match="not loaded") as error:
        node.root.observe()
    assert error.value.kind is ErrorKind.LIBRARY_MISSING
    point = node.root.up_point(False)
    assert point is not None
    assert (point.labels, point.value) == (("", ""), 0)
    assert node.root.up_point(True) is None


def test_a_mismatch_is_tried_again_ever_more_seldom(machine: Machine) -> None:
    fake, node = machine(1), Node()
    fake.fail("system", 18, "nvmlInitWithFlags")
    kinds = []
    for node.now in range(100):
        with pytest.raises(SourceError, match="restart this container") as error:
            node.root.observe()
        kinds.append(error.value.kind)
    assert set(kinds) == {ErrorKind.DRIVER_MISMATCH}
    assert fake.calls().count("nvmlInitWithFlags system") == 5  # at 0, 5, 15, 35 and 75 s
    fake.fail("system", None, "nvmlInitWithFlags")
    node.now = 200
    assert node.read()["memory_used_bytes", "0"]


def test_an_unknown_error_at_the_start_ends_the_process_after_five_tries(machine: Machine) -> None:
    fake, node = machine(1), Node()
    fake.fail("system", 999, "nvmlInitWithFlags")
    for _ in range(4):
        with pytest.raises(SourceError) as error:
            node.root.observe()
        assert not isinstance(error.value, FatalSourceError)
    with pytest.raises(FatalSourceError, match="must be created anew"):
        node.root.observe()
    assert fake.calls().count("nvmlInitWithFlags system") == 5


def test_an_unknown_error_of_every_gpu_ends_the_process(machine: Machine) -> None:
    fake, node = machine(2), Node()
    node.read()
    for gpu in ("gpu0", "gpu1"):
        fake.fail(gpu, 999)
    for _ in range(4):
        node.read()
    for _ in range(20):  # what was read once is not counted again
        node.root.observe()
    with pytest.raises(FatalSourceError):
        node.read()


def test_one_good_answer_in_between_starts_the_count_anew(machine: Machine) -> None:
    fake, node = machine(1), Node()
    for code in (999, 999, None) * 4:
        fake.fail("gpu0", code)
        node.read()
    assert node.read()["devices_visible",] == 1


def test_a_call_that_hangs_holds_up_its_own_gpu_only(machine: Machine) -> None:
    fake, node = machine(2), Node()
    node.read()
    fake.hang("gpu1", "nvmlDeviceGetMemoryInfo_v2")
    done: list[Observation] = []
    stuck = threading.Thread(target=lambda: done.append(node.devices[1].observe()), daemon=True)
    stuck.start()
    fake.await_call("nvmlDeviceGetMemoryInfo_v2 gpu1")
    node.now += 11  # past the deadline
    assert node.devices[1].hung
    assert values(node.devices[0].observe())["utilization_ratio", "0"] == 0.4
    observation = node.root.observe()
    assert values(observation)["devices_visible",] == 1
    assert "gpu1" in observation.gaps[0].reason

    # NVML is not shut down under the call, neither to mend another GPU nor at the end.
    fake.fail("gpu0", GPU_IS_LOST)
    with pytest.raises(SourceError):
        node.devices[0].observe()
    node.root.observe()
    assert node.root.close() is False
    assert "nvmlShutdown system" not in fake.calls()

    fake.release("gpu1", "nvmlDeviceGetMemoryInfo_v2")
    fake.fail("gpu0", None)
    stuck.join()
    assert done
    node.read()
    assert node.read()["devices_visible",] == 2


def test_nvml_is_shut_down_at_the_end(machine: Machine) -> None:
    fake, node = machine(1), Node()
    node.read()
    assert node.root.close() is True
    assert fake.calls()[-1] == "nvmlShutdown system"
    with pytest.raises(SourceError, match="NVML is down"):
        node.devices[0].observe()


def test_without_the_library_all_else_goes_on() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    output = _read_root(environment)
    assert "library_missing nvmlInit: NVML code 12: libnvidia-ml.so.1 is not there" in output
    assert "value=0.0" in output


def test_the_library_is_found_by_its_name(fake_library: Path, tmp_path: Path) -> None:
    fake = FakeNvml(tmp_path / "script")
    assert "590.48.01" in _read_root(fake.environment(fake_library))


def _read_root(environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "error", "-c", READ_ROOT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sidecar_drops_the_series_of_a_gpu_that_hangs_and_keeps_the_others(
    machine: Machine,
) -> None:
    fake = machine(2)
    board = Board()
    poller = Poller(board, on_fatal=lambda error: pytest.fail(error.detail))
    root = NvmlRoot(poller.add, interval=0.05, device_interval=0.05, device_deadline=0.5)
    poller.add(root)

    def utilisation() -> dict[str, float]:
        board.check()
        points = [p for p in board.points() if p.family is names.GPU_UTILIZATION_N]
        return {point.labels[0]: float(point.value) for point in points}  # type: ignore[arg-type]  # a counter

    def until(wanted: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        while not wanted(got := utilisation()):
            time.sleep(0.01)
        return got

    until(lambda got: set(got) == {"0", "1"})
    fake.hang("gpu1")
    before = until(lambda got: set(got) == {"0"})
    until(lambda got: got["0"] > before["0"])
    ups = {p.labels[0]: p.value for p in board.points() if p.family is names.GPU_UP}
    assert ups == {"0": 1, "1": 0}
    fake.release("gpu1")
    until(lambda got: set(got) == {"0", "1"})
    poller.stop()
    assert root.close()
