"""The real pynvml over the fake library: each test has a machine, and a library, of its own."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest
from fakenvml import FakeNvml, compile_fake


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_fake(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver older than R510."""
    return compile_fake(tmp_path_factory.mktemp("nvml-r470"), "-DR470")


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FakeNvml]]:
    """load(library, gpus): pynvml, as if just imported, on a machine with so many GPUs.

    The library is copied, because the loader gives a file that it knows the state it had before.
    """
    script = tmp_path / "script"

    def load(library: Path, gpus: int = 1) -> FakeNvml:
        own = Path(shutil.copy(library, tmp_path / "libnvidia-ml.so.1"))
        monkeypatch.setenv("FAKE_NVML_SCRIPT", str(script))
        monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(own)))
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        monkeypatch.setattr(pynvml, "_nvmlLib_refcount", 0)
        return FakeNvml(script, gpus)

    yield load
    script.unlink(missing_ok=True)  # a call that a test left hanging returns


@pytest.fixture
def machine(load: Callable[..., FakeNvml], fake_library: Path) -> Callable[[int], FakeNvml]:
    """machine(gpus): healthy H200s under a present-day driver."""
    return lambda gpus=1: load(fake_library, gpus)
