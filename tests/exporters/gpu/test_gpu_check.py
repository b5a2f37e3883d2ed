"""bench/gpu_check.py, run as a program: on the fake machine, and on this one, which has no NVML."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from fakenvml import FakeNvml

SCRIPT = Path(__file__).parents[3] / "bench" / "gpu_check.py"


def run(environment: dict[str, str], *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--reads", "3", "--pause", "0", *flags]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_without_nvml_it_says_so_in_one_line() -> None:
    done = run({k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("nvmlInit: NVML code 12: libnvidia-ml.so.1 is not there")
    assert done.stderr.count("\n") == 1


def test_on_healthy_gpus_it_prints_costs_and_families(fake_library: Path, tmp_path: Path) -> None:
    environment = FakeNvml(tmp_path / "script", gpus=2).environment(fake_library)
    done = run(environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no failure" in done.stdout
    result = json.loads(run(environment, "--json").stdout)
    assert result["calls"]["nvmlDeviceGetMemoryInfo_v2"]["reads"] == 6
    assert "hw_slowdown" in result["present"]["inferslo_gpu_clock_event_active"]
    assert "NVML code 3" in result["absent"]["inferslo_gpu_retired_pages"]


def test_a_call_that_fails_is_named_with_its_code(fake_library: Path, tmp_path: Path) -> None:
    fake = FakeNvml(tmp_path / "script")
    fake.fail("gpu0", 10, "nvmlDeviceGetUtilizationRates")
    done = run(fake.environment(fake_library))
    assert done.returncode == 1
    assert "GPU 0: 3 calls failed with NVML code 10" in done.stdout


def test_a_gpu_that_is_lost_fails_the_check(fake_library: Path, tmp_path: Path) -> None:
    fake = FakeNvml(tmp_path / "script", gpus=2)
    fake.fail("gpu1", 15)
    done = run(fake.environment(fake_library))
    assert done.returncode == 1
    assert "gpu1: to find GPU 1: NVML code 15" in done.stdout


def test_a_gpu_that_hangs_does_not_hold_up_the_check(fake_library: Path, tmp_path: Path) -> None:
    fake = FakeNvml(tmp_path / "script", gpus=2)
    fake.hang("gpu1", "nvmlDeviceGetUtilizationRates")
    done = run(fake.environment(fake_library), "--seconds", "1")
    assert done.returncode == 1
    assert "gpu1: a call does not return" in done.stdout
    assert "nvmlDeviceGetUtilizationRates" in done.stdout  # of the other GPU


def test_an_initialisation_that_hangs_ends_too(fake_library: Path, tmp_path: Path) -> None:
    fake = FakeNvml(tmp_path / "script")
    fake.hang("system", "nvmlInitWithFlags")
    done = run(fake.environment(fake_library), "--seconds", "-9")  # the grace is 10 s
    assert done.returncode == 1
    assert "reboot the node" in done.stderr
