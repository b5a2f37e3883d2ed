"""NVML is initialised once for the process: who may change that, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from fakenvml import FakeNvml

from inferslo.exporters.gpu.session import Session
from inferslo.exporters.reading import SourceError

Machine = Callable[..., FakeNvml]


def test_a_borrower_keeps_nvml_open(machine: Machine) -> None:
    fake = machine(1)
    session = Session(patience=0.01)
    session.open()
    with session.borrow() as generation:
        assert session.open() is False
        assert session.close() is False
        assert session.generation == generation
    assert "nvmlShutdown system" not in fake.calls()
    assert session.open() is True
    assert session.generation == generation + 1


def test_a_borrower_waits_while_nvml_is_initialised_and_then_reads(machine: Machine) -> None:
    fake = machine(1)
    session = Session(patience=5)
    fake.hang("system", "nvmlInitWithFlags")
    opening = threading.Thread(target=session.open, daemon=True)
    opening.start()
    fake.await_call("nvmlInitWithFlags system")
    release = threading.Timer(0.05, fake.release, ("system", "nvmlInitWithFlags"))
    release.start()
    with session.borrow() as generation:
        assert generation == 1
    opening.join()


def test_a_borrower_does_not_wait_for_ever_for_an_initialisation_that_hangs(
    machine: Machine,
) -> None:
    fake = machine(1)
    session = Session(patience=0.01)
    fake.hang("system", "nvmlInitWithFlags")
    opening = threading.Thread(target=session.open, daemon=True)
    opening.start()
    fake.await_call("nvmlInitWithFlags system")
    with pytest.raises(SourceError, match="NVML is down"), session.borrow():
        pass
    fake.release("system", "nvmlInitWithFlags")
    opening.join()


def test_errors_of_no_gpu_are_counted_without_one(machine: Machine) -> None:
    machine(1).fail("system", 18, "nvmlInitWithFlags")
    session = Session()
    for _ in range(2):
        with pytest.raises(SourceError):
            session.open()
    (point,) = session.error_points()
    assert (point.labels, point.value) == (("", "", "18"), 2)


@pytest.mark.parametrize(("version", "major"), [("590.48.01", 590), ("", 0), ("r590", 0)])
def test_the_major_version_of_the_driver(version: str, major: int) -> None:
    session = Session()
    session.driver_version = version
    assert session.driver_major == major
