"""Runs the GPU sources on this machine's GPUs and says what each call costs and what is missing.

    python bench/gpu_check.py [--reads N] [--pause SECONDS] [--seconds SECONDS] [--json]

For the day there is a GPU: the tests have only a fake one. It reads each GPU as the sidecar does,
in a thread of its own, but with the seldom calls in every read. It ends within 60 seconds,
whatever hangs.

Exit code: 0 all well; 1 a call failed, hung, or gave a value that cannot be; 3 no NVML here.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from inferslo.exporters import names
from inferslo.exporters.gpu.device import DeviceSource
from inferslo.exporters.gpu.events import XidSource
from inferslo.exporters.gpu.nvml import NvmlRoot
from inferslo.exporters.gpu.session import Session
from inferslo.exporters.names import FAMILIES, Feed, Kind
from inferslo.exporters.reading import ErrorKind, Observation, Point, Source, SourceError

GRACE = 10.0  # seconds for what comes before and after the reads
NO_NVML = 3
# Told when something happens, or by the sidecar and the root source.
OCCASIONAL = {
    names.GPU_XID_EVENTS, names.GPU_XID_LAST, names.GPU_ERRORS, names.GPU_UP, names.GPU_VISIBLE,
    names.GPU_EXPECTED,
}  # fmt: skip


@dataclass
class Findings:
    """What the reads of all sources gave. costs: seconds of each call, read by read."""

    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    costs: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    present: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    absent: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    last: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, source: str, observation: Observation) -> None:
        with self.lock:
            self.facts[source] = dict(observation.facts)
            self.absent |= {gap.signal: f"{gap.reason}; {gap.remedy}" for gap in observation.gaps}
            for point in observation.points:
                self._take_point(point)

    def fail(self, line: str) -> None:
        if line not in self.failures:
            self.failures.append(line)

    def _take_point(self, point: Point) -> None:
        family, series = point.family, f"{point.family.name}{point.labels}"
        assert isinstance(point.value, float), "no GPU family is a histogram"
        value = point.value
        if family is names.GPU_CALL_SECONDS:
            self.costs[point.labels[2]].append(value)
        self.present[family.name].add("/".join(point.labels[2:]))
        over = family.unit == "ratio" and family.kind is Kind.GAUGE and value > 1
        if over or not math.isfinite(value):
            self.fail(f"{series} is {value}")
        before = self.last.get(series, value)
        if family.kind is Kind.COUNTER and value < before:
            self.fail(f"{series} went back from {before} to {value}")
        self.last[series] = value


def check(reads: int, pause: float, seconds: float) -> Findings:
    """Raises SourceError if NVML is not there, or finds no GPU."""
    found = Findings()
    sources: list[Source] = []
    session = Session()
    root = NvmlRoot(sources.append, session=session)
    root.observe()
    gpus = [source.name.removeprefix("gpu") for source in sources if source.name != XidSource.name]
    devices = [DeviceSource(session, int(gpu), slow_interval=0) for gpu in gpus]
    ends = time.monotonic() + seconds
    threads = [
        threading.Thread(target=_read, args=(device, found, reads, pause, ends), daemon=True)
        for device in devices
    ]
    for thread in threads:
        thread.start()
    for device, thread in zip(devices, threads, strict=True):
        thread.join(max(0.0, ends + 1 - time.monotonic()))
        if thread.is_alive():
            found.fail(f"{device.name}: a call does not return")
    _read(XidSource(session), found, reads=2, pause=0, ends=math.inf)
    _close(root, session, found)
    return found


def _read(source: Source, found: Findings, reads: int, pause: float, ends: float) -> None:
    for _ in range(reads):
        try:
            found.take(source.name, source.observe())
        except SourceError as error:
            found.fail(f"{source.name}: {error.detail}")
        if time.monotonic() > ends:
            break
        time.sleep(pause)


def _close(root: NvmlRoot, session: Session, found: Findings) -> None:
    found.facts["gpu"] = {"driver_version": session.driver_version}
    for point in session.error_points():
        gpu, _, code = point.labels
        found.fail(f"GPU {gpu or '-'}: {point.value:.0f} calls failed with NVML code {code}")
    wanted = {f.name for f in FAMILIES.values() if f.feed is Feed.GPU and f not in OCCASIONAL}
    for name in sorted(wanted - found.present.keys() - found.absent.keys()):
        found.fail(f"{name}: neither a value nor a reason for its absence")
    if not root.close():
        found.fail("NVML cannot be shut down: a call is under way")


def as_dict(found: Findings) -> dict[str, object]:
    """The result as JSON."""
    calls = {
        call: {"reads": n, "median_us": median, "p99_us": p99}
        for call, n, median, p99 in _costs(found)
    }
    return {
        "facts": found.facts,
        "calls": calls,
        "present": {name: sorted(labels) for name, labels in sorted(found.present.items())},
        "absent": dict(sorted(found.absent.items())),
        "failures": found.failures,
    }


def _costs(found: Findings) -> list[tuple[str, int, float, float]]:
    """Call, number of reads, median and 99th percentile in microseconds; the dearest first."""
    rows = [
        (call, len(costs), _us(statistics.median(costs)), _us(_p99(costs)))
        for call, costs in found.costs.items()
    ]
    return sorted(rows, key=lambda row: -row[2])


def _p99(costs: list[float]) -> float:
    return sorted(costs)[math.ceil(0.99 * len(costs)) - 1]


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 1)


def show(found: Findings) -> None:
    for source, facts in sorted(found.facts.items()):
        print(f"{source:12}" + ", ".join(f"{key} {value}" for key, value in facts.items()))
    print(f"\n{'call':48}{'reads':>7}{'median µs':>12}{'p99 µs':>12}")
    for call, reads, median, p99 in _costs(found):
        print(f"{call:48}{reads:7}{median:12}{p99:12}")
    print("\npresent")
    for name, labels in sorted(found.present.items()):
        print(f"  {name:56} {' '.join(sorted(labels - {''}))}")
    print("\nabsent, or absent in part")
    for name, why in sorted(found.absent.items()):
        print(f"  {name:56} {why}")
    print("\nfailures" if found.failures else "\nno failure")
    for line in found.failures:
        print(f"  {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reads", type=int, default=200, help="reads of each GPU")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two reads")
    parser.add_argument("--seconds", type=float, default=45, help="end the reads after so long")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    watchdog = threading.Timer(options.seconds + GRACE, _give_up)
    watchdog.daemon = True
    watchdog.start()
    try:
        found = check(options.reads, options.pause, options.seconds)
    except SourceError as error:
        print(error.detail, file=sys.stderr)
        return NO_NVML if error.kind is ErrorKind.LIBRARY_MISSING else 1
    if options.json:
        print(json.dumps(as_dict(found), indent=2))
    else:
        show(found)
    return 1 if found.failures else 0


def _give_up() -> None:
    print("NVML does not return from a call that is about no GPU: reboot the node", file=sys.stderr)
    os._exit(1)  # a thread inside the driver cannot be ended otherwise


if __name__ == "__main__":
    sys.exit(main())
