"""Xid events: counted, never sticky, and not forgotten when their GPU is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakenvml import GPU_IS_LOST, NOT_SUPPORTED, FakeNvml, values

from inferslo.exporters.gpu.events import XidSource
from inferslo.exporters.gpu.session import Session
from inferslo.exporters.reading import SourceError

Machine = Callable[..., FakeNvml]


class Listener:
    """An XidSource whose wall clock the test sets; every GPU has answered before."""

    def __init__(self, gpus: int = 1) -> None:
        self.now = 1000.0
        self.session = Session()
        self.session.open()
        for gpu in range(gpus):
            self.session.label(f"GPU-{gpu:08x}", str(gpu))
        self.source = XidSource(self.session, wait=0.01, wall=lambda: self.now)

    def read(self) -> dict[tuple[str, ...], float]:
        return values(self.source.observe())


def test_the_same_xid_twice_counts_twice_and_does_not_stick(machine: Machine) -> None:
    fake, listener = machine(1), Listener()
    assert listener.read() == {}
    fake.event(0, gpu=0, data=31)
    assert listener.read()["xid_events_total", "0", "31"] == 1
    listener.now += 600
    fake.event(1, gpu=0, data=31)
    assert listener.read()["xid_events_total", "0", "31"] == 2
    listener.now += 3600
    assert listener.read() == {
        ("xid_events_total", "0", "31"): 2,
        ("xid_last_timestamp_seconds", "0", "31"): 1600,
    }


def test_xids_are_told_apart_by_gpu_and_code(machine: Machine) -> None:
    fake, listener = machine(2), Listener(2)
    listener.read()
    for number, (gpu, xid) in enumerate([(0, 31), (1, 79), (1, 48)]):
        fake.event(number, gpu, xid)
        listener.read()
    assert {key[1:] for key in listener.read()} == {("0", "31"), ("1", "79"), ("1", "48")}


def test_an_event_of_another_type_is_no_xid(machine: Machine) -> None:
    fake, listener = machine(1), Listener()
    listener.read()
    fake.event(0, gpu=0, data=31, type=4)
    assert listener.read() == {}


def test_what_happened_before_is_not_replayed(machine: Machine) -> None:
    machine(1).event(0, gpu=0, data=31)
    assert Listener().read() == {}


def test_the_last_xid_of_a_lost_gpu_stays(machine: Machine) -> None:
    fake, listener = machine(2), Listener(2)
    listener.read()
    fake.event(0, gpu=1, data=79)
    listener.read()
    fake.fail("gpu1", GPU_IS_LOST)
    fake.fail("system", GPU_IS_LOST, "nvmlEventSetWait_v2")
    observation = listener.source.observe()
    assert values(observation)["xid_events_total", "1", "79"] == 1
    assert observation.gaps
    assert listener.source.interval > 0  # no spinning

    # The set is built anew without the lost GPU, and hears of the other.
    fake.fail("system", None, "nvmlEventSetWait_v2")
    observation = listener.source.observe()
    assert "of GPU 1" in observation.gaps[0].signal
    fake.event(1, gpu=0, data=13)
    got = listener.read()
    assert got["xid_events_total", "0", "13"] == 1
    assert got["xid_events_total", "1", "79"] == 1


def test_events_are_received_after_nvml_was_initialised_again(machine: Machine) -> None:
    fake, listener = machine(1), Listener()
    fake.event(0, gpu=0, data=31)
    listener.read()
    fake.event(1, gpu=0, data=31)
    listener.read()
    listener.session.open()
    listener.read()
    fake.event(2, gpu=0, data=31)
    assert listener.read()["xid_events_total", "0", "31"] == 2


def test_a_gpu_without_events_is_a_gap_asked_once(machine: Machine) -> None:
    fake, listener = machine(1), Listener()
    fake.fail("gpu0", NOT_SUPPORTED, "nvmlDeviceRegisterEvents")
    listener.source.observe()
    (gap,) = listener.source.observe().gaps
    assert "does not have it" in gap.remedy
    assert fake.calls().count("nvmlDeviceRegisterEvents gpu0") == 1
    assert listener.source.interval > 0
    assert listener.session.error_points() == []


def test_while_nvml_is_down_only_what_was_seen_is_told(machine: Machine) -> None:
    fake, listener = machine(1), Listener()
    listener.session.close()
    with pytest.raises(SourceError, match="NVML is down"):
        listener.source.observe()
    listener.session.open()
    listener.read()
    fake.event(0, gpu=0, data=79)
    listener.read()
    listener.session.close()
    observation = listener.source.observe()
    assert values(observation)["xid_events_total", "0", "79"] == 1
    assert observation.gaps
    assert listener.source.interval > 0
