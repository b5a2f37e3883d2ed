"""A scripted GPU machine: compiles the fake NVML (fakenvml.c) and writes its script.

The values of a healthy GPU are those of an H200 under driver 590, as exporters publish them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from inferslo.exporters.reading import Observation

SOURCE = Path(__file__).with_name("fakenvml.c")
GIB = 1 << 30
INT, LONG, SIGNED = 1, 3, 5  # NVML value types
NOT_SUPPORTED, NO_PERMISSION, GPU_IS_LOST = 3, 4, 15
XID = 8  # event type

_HEALTHY = {
    "name": "NVIDIA H200",
    "memory.total": 140 * GIB,
    "memory.reserved": 600 * (1 << 20),
    "memory.used": 100 * GIB,
    "memory.free": 39 * GIB,
    "utilization.gpu": 40,
    "utilization.memory": 20,
    "temperature": 52,
    "margin": 35,
    "clock:1": 1980,
    "clock:2": 3201,
    "reasons": 4,
    "mig": 0,
    "processes": f"101:{60 * GIB},102:{20 * GIB}",
}
_FIELDS = {
    82: (INT, 40),  # memory temperature
    193: (SIGNED, -8),  # shutdown, as a margin
    194: (SIGNED, -2),
    195: (SIGNED, 0),
    196: (SIGNED, 0),
    185: (INT, 350_000),  # mW
    186: (INT, 360_500),
    190: (INT, 700_000),
    83: (LONG, 5_000_000),  # mJ
    74: (LONG, 2_500_000_000),  # ns
    75: (LONG, 1_000_000),
    76: (LONG, 0),
    269: (LONG, 0),
    270: (LONG, 1_000_000),
    271: (LONG, 0),
    3: (LONG, 7),
    4: (LONG, 0),
    5: (LONG, 9),
    6: (LONG, 1),
    142: (INT, 2),
    143: (INT, 0),
    144: (INT, 0),
    145: (INT, 0),
    230: (INT, 0),
    94: (INT, 3),
    **dict.fromkeys(range(173, 184), (INT, 0)),
    91: (INT, 0),  # NVLinks
}


def compile_fake(folder: Path, *flags: str) -> Path:
    """Compiles the fake into `folder` and returns the path of its libnvidia-ml.so.1."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise RuntimeError(
            "the GPU tests compile a fake libnvidia-ml.so.1: install gcc (apt-get install gcc)"
        )
    library = folder / "libnvidia-ml.so.1"
    command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    command += [*flags, "-o", str(library), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the fake NVML does not compile:\n{done.stderr}")
    return library


def values(observation: Observation) -> dict[tuple[str, ...], float]:
    """The points by short name, `gpu` and the labels after `uuid`: ("clock_hertz", "0", "sm")."""
    found: dict[tuple[str, ...], float] = {}
    for point in observation.points:
        name = point.family.name.removeprefix("inferslo_gpu_")
        labels = [v for k, v in zip(point.family.labels, point.labels, strict=True) if k != "uuid"]
        assert isinstance(point.value, float)
        assert (name, *labels) not in found, f"two values of {name}{labels}"
        found[name, *labels] = point.value
    return found


class FakeNvml:
    """The script of one machine; each change takes effect at the driver's next call.

    subjects: "system", "gpu0", and "gpu0.1" for the first MIG part of GPU 0.
    """

    def __init__(self, script: Path, gpus: int = 1) -> None:
        self.path = script
        self._lines: dict[tuple[str, str], str] = {}
        self.put("system", driver="590.48.01", count=gpus)
        for gpu in range(gpus):
            self.put(f"gpu{gpu}", uuid=f"GPU-{gpu:08x}", **_HEALTHY)
            for id, (type, value) in _FIELDS.items():
                self.field(gpu, id, value, type=type)

    def put(self, subject: str, **values: object) -> None:
        """Sets plain values; `None` takes one away."""
        for key, value in values.items():
            self.set(subject, key, value)

    def set(self, subject: str, key: str, value: object) -> None:
        if value is None:
            self._lines.pop((subject, key), None)
        else:
            self._lines[subject, key] = str(value)
        new = self.path.with_suffix(".new")
        lines = [f"{subject} {key} {value}\n" for (subject, key), value in self._lines.items()]
        new.write_text("".join(lines))
        new.replace(self.path)

    def field(
        self,
        gpu: int,
        id: int,
        value: object,
        *,
        type: int = LONG,
        scope: int = 0,
        latency: int = 0,
    ) -> None:
        """Sets a field; latency: what NVML says it took, in microseconds."""
        entry = None if value is None else f"{type}:{value}:{latency}"
        self.set(f"gpu{gpu}", f"field:{id}:{scope}", entry)

    def fail(self, subject: str, code: int | None, call: str = "*") -> None:
        """From now on the call answers this return code; None heals it."""
        self.set(subject, f"return:{call}", code)

    def hang(self, subject: str, call: str = "*") -> None:
        self.set(subject, f"hang:{call}", 1)

    def release(self, subject: str, call: str = "*") -> None:
        self.set(subject, f"hang:{call}", None)

    def event(self, number: int, gpu: int, data: int, *, type: int = XID) -> None:
        """The event that is delivered as the `number`th, from 0."""
        self.set("system", f"event:{number}", f"{gpu}:{type}:{data}")

    def calls(self) -> list[str]:
        """The calls made so far, as "CALL SUBJECT"."""
        log = Path(f"{self.path}.log")
        return log.read_text().splitlines() if log.exists() else []

    def await_call(self, call: str) -> None:
        """Returns once the last call that another thread made is this one."""
        while self.calls()[-1:] != [call]:
            time.sleep(0.005)

    def environment(self, library: Path) -> dict[str, str]:
        """For a process that is to find this machine by the name libnvidia-ml.so.1."""
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(library.parent),
            "FAKE_NVML_SCRIPT": str(self.path),
        }
