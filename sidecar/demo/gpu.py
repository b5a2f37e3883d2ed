"""The GPU under one engine: heat, clocks, power, memory, and what NVML would say of them.

Made numbers of a made GPU of 141 GB. Temperature follows power with a time constant of a minute;
from 85 °C on the driver lowers clocks, which slows the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from ...exporters import names
from ...exporters.names import Family
from ...exporters.reading import Observation, Point
from .faults import Effects

GIB = 2**30
_TOTAL = 141 * GIB
_WEIGHTS_AND_KV = 0.9 * _TOTAL  # vLLM takes it at the start, so the use of device memory is flat
_RESERVED = 0.6 * GIB
_AMBIENT, _PER_WATT, _TIME_CONSTANT = 27.0, 0.058, 60.0  # °C, °C/W, seconds
_SLOWDOWN = 85.0
_LIMITS = {"slowdown": 87.0, "shutdown": 92.0}
_IDLE_WATTS, _BUSY_WATTS = 90.0, 620.0
_CLOCK = 1.98e9
_SAMPLES = 1.0  # of utilisation a second, as the sidecar takes them


class Gpu:
    """advance() with the share of time that the engine was busy; `clock` is the share of its full
    speed that the GPU then runs at."""

    def __init__(self, index: int, random: Random) -> None:
        self.labels = (str(index), f"GPU-51a0{index:04d}")
        self.temperature = 55.0
        self.clock = 1.0
        self.lost = False
        self._random = random
        self._watts = _IDLE_WATTS
        self._joules = 0.0
        self._utilization = 0.0
        self._moments = [0.0, 0.0, 0.0]  # n, Σx, Σx²
        self._throttled = {"sw_thermal_slowdown": 0.0, "sw_power_cap": 0.0}
        self._leaked = 0.0  # bytes
        self._stranded = 1.5 * GIB
        self._ooms: dict[str, float] = {}
        self._xids: dict[int, tuple[int, float]] = {}  # times seen, Unix time of the last

    def restarted(self) -> None:
        """The engine's process began anew: what it held is free."""
        self._leaked, self._stranded, self._ooms = 0.0, 1.5 * GIB, {}

    def replaced(self) -> None:
        """Another GPU, which has seen no error yet."""
        self.restarted()
        self._xids = {}

    def failed(self, xid: int, now: float) -> None:
        self._xids[xid] = (self._xids.get(xid, (0, 0.0))[0] + 1, now)

    def advance(self, seconds: float, busy: float, now: float, effects: Effects) -> None:
        """now: the end of these seconds."""
        self.lost = effects.gpu_lost
        use = min(busy + effects.neighbour, 1.0)
        self._sample(seconds, use, now, effects.swing)
        self._watts = _IDLE_WATTS + (_BUSY_WATTS - _IDLE_WATTS) * self._utilization * self.clock
        self._joules += self._watts * seconds
        aim = _AMBIENT + _PER_WATT * self._watts + effects.heat
        self.temperature += (aim - self.temperature) * (1 - math.exp(-seconds / _TIME_CONSTANT))
        hot = self.temperature >= _SLOWDOWN
        if hot:
            self._throttled["sw_thermal_slowdown"] += seconds
        self.clock = effects.clock_factor * (0.6 if hot else 1.0)
        hours = seconds / 3600
        self._leaked += effects.gpu_leak_gib_per_hour * GIB * hours
        self._stranded += effects.stranded_gib_per_hour * GIB * hours
        for cause, rate in effects.ooms_per_hour.items():
            if self._random.random() < rate * hours:
                self._ooms[cause] = self._ooms.get(cause, 0.0) + 1

    def _sample(self, seconds: float, use: float, now: float, swing: float) -> None:
        high = 1.0 if math.sin(now / 20) > 0 else 1 - swing
        n = max(seconds * _SAMPLES, 1.0)
        samples = [
            min(max(self._random.gauss(0.97 * use * high, 0.02 * use), 0.0), 1.0)
            for _ in range(min(round(n), 4))
        ]
        self._utilization = samples[-1]
        share = n / len(samples)
        for power in range(3):
            self._moments[power] += share * math.fsum(x**power for x in samples)

    def observation(self) -> Observation:
        """What the GPU source would give; only its health where the GPU is lost."""
        own = [] if self.lost else list(self._points())
        visible = Point(names.GPU_VISIBLE, (), 0.0 if self.lost else 1.0)
        up = Point(names.GPU_UP, self.labels, 0.0 if self.lost else 1.0)
        return Observation((visible, Point(names.GPU_EXPECTED, (), 1.0), up, *own))

    def _points(self) -> Iterator[Point]:
        used = min(_WEIGHTS_AND_KV + self._leaked, _TOTAL - _RESERVED)
        n, total, squares = self._moments
        for family, value in {
            names.GPU_MEMORY_TOTAL: float(_TOTAL), names.GPU_MEMORY_USED: used,
            names.GPU_MEMORY_FREE: _TOTAL - _RESERVED - used,
            names.GPU_MEMORY_RESERVED: _RESERVED, names.GPU_UTILIZATION: self._utilization,
            names.GPU_UTILIZATION_N: n, names.GPU_UTILIZATION_SUM: total,
            names.GPU_UTILIZATION_SQUARES: squares, names.GPU_ENERGY: self._joules,
            names.GPU_POWER_LIMIT: 700.0, names.GPU_RECOVERY_ACTION: 0.0,
            names.GPU_ROW_REMAP_PENDING: 0.0, names.GPU_ROW_REMAP_FAILED: 0.0,
            names.GPU_PROCESSES: 1.0,
        }.items():  # fmt: skip
            yield self._point(family, value)
        yield self._point(names.GPU_INFO, 1.0, "simulated GPU", "570.86.15", "")
        yield self._point(names.GPU_TEMPERATURE, round(self.temperature, 0), "gpu")
        for limit, degrees in _LIMITS.items():
            yield self._point(names.GPU_TEMPERATURE_LIMIT, degrees, limit)
        yield self._point(names.GPU_POWER, self._watts, "average")
        yield self._point(names.GPU_CLOCK, _CLOCK * self.clock, "sm")
        for reason, seconds in self._throttled.items():
            yield self._point(names.GPU_CLOCK_EVENT_SECONDS, seconds, reason)
        for severity in ("corrected", "uncorrected"):
            yield self._point(names.GPU_ECC_ERRORS, 0.0, severity, "volatile")
        for xid, (times, last) in self._xids.items():
            yield self._point(names.GPU_XID_EVENTS, float(times), str(xid))
            yield self._point(names.GPU_XID_LAST, last, str(xid))

    def _point(self, family: Family, value: float, *labels: str) -> Point:
        return Point(family, (*self.labels, *labels), value)

    def allocator(self, engine: str) -> Iterator[Point]:
        """What the in-engine probe would say of the engine's allocator."""
        uuid = self.labels[1]
        reserved = min(_WEIGHTS_AND_KV + self._leaked, _TOTAL - _RESERVED)
        stranded = min(self._stranded, reserved)
        yield Point(names.ALLOCATOR_RESERVED, (engine, uuid), reserved)
        yield Point(names.ALLOCATOR_STRANDED, (engine, uuid), stranded)
        for cause, times in self._ooms.items():
            yield Point(names.ALLOCATOR_OOMS, (engine, uuid, cause), times)
