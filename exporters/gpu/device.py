"""One GPU, read in a thread of its own: when its driver call hangs, only this source hangs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

from .. import names
from ..reading import Gap, Observation, Point
from . import mig, telemetry
from .calls import Calls, Value
from .errors import UNKNOWN, DriverError, return_code
from .fields import read_fields, read_links
from .session import Session


@dataclass(frozen=True, slots=True)
class _Gpu:
    """The GPU as one initialisation of NVML knows it."""

    generation: int
    handle: Any
    name: str


@dataclass(frozen=True, slots=True)
class _Slow:
    """What is read seldom: it is dear for the driver, or hardly changes. seconds: cost by call."""

    read_at: float
    values: tuple[Value, ...]
    gaps: tuple[Gap, ...]
    seconds: dict[str, float]
    mig_mode: bool
    parts: tuple[mig.Part, ...]


class DeviceSource:
    """Reads one GPU. `index` is its NVML index when first seen, and its label `gpu` for good.

    interval, deadline, slow_interval: seconds; without an interval it is for who reads by hand.
    answered: outcome of the last finished read, None
    before the first. unknown: reads in a row that ended in "unknown error".
    """

    def __init__(
        self,
        session: Session,
        index: int,
        *,
        interval: float = 0.0,
        deadline: float = math.inf,
        slow_interval: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"gpu{index}"
        self.interval = interval
        self.deadline = deadline
        self.answered: bool | None = None
        self.unknown = 0
        self._session = session
        self._index = index
        self._label = str(index)
        self._uuid = ""
        self._slow_interval = slow_interval
        self._clock = clock
        self._began: float | None = None
        self._gpu: _Gpu | None = None
        self._slow: _Slow | None = None
        self._utilization = _Moments()

    @property
    def hung(self) -> bool:
        """Whether the read now under way is past its deadline."""
        began = self._began
        return began is not None and self._clock() - began > self.deadline

    def up_point(self, up: bool) -> Point:
        return Point(names.GPU_UP, (self._label, self._uuid), float(up))

    def observe(self) -> Observation:
        """Raises DriverError, or SourceError while NVML is down."""
        self._began = self._clock()
        answered, unknown = False, 0
        try:
            with self._session.borrow() as generation:
                observation = self._read(generation)
            answered = True
            return observation
        except DriverError as error:
            unknown = self.unknown + 1 if error.code == UNKNOWN else 0
            self._gpu = None
            self._session.suspect = True
            raise
        finally:
            self.answered, self.unknown, self._began = answered, unknown, None

    def _read(self, generation: int) -> Observation:
        if self._gpu is None or self._gpu.generation != generation:
            self._gpu, self._slow = self._find(generation), None
        slow = self._slow = self._slow_facts(self._gpu.handle)
        calls = Calls(self._count_error)
        values = self._fast_values(calls, self._gpu.handle)
        points = [value.point(self._label, self._uuid) for value in values]
        points += self._memory(calls, self._gpu.handle, slow.parts)
        if not points:
            raise calls.nothing()
        values = [*slow.values, *self._utilization.add(values)]
        points += [value.point(self._label, self._uuid) for value in values]
        points += self._info(self._gpu, slow.parts)
        points += self._costs(slow.seconds | calls.seconds)
        facts = {
            "uuid": self._uuid, "name": self._gpu.name, "mig": "on" if slow.mig_mode else "off",
        }  # fmt: skip
        return Observation(tuple(points), (*calls.gaps(), *slow.gaps), facts)

    def _find(self, generation: int) -> _Gpu:
        """By UUID once it is known: indices shift when a GPU comes or goes."""
        try:
            known = self._uuid
            handle = pynvml.nvmlDeviceGetHandleByUUID(known) if known else self._claim()
            return _Gpu(generation, handle, str(pynvml.nvmlDeviceGetName(handle)))
        except pynvml.NVMLError as error:
            self._count_error(return_code(error))
            raise DriverError(return_code(error), f"to find GPU {self._label}") from None

    def _claim(self) -> Any:
        """The GPU at our index, or, if another source has it since before, one that none has."""
        for index in (self._index, *range(self._index)):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = str(pynvml.nvmlDeviceGetUUID(handle))
            if self._session.label(uuid, self._label) == self._label:
                self._uuid = uuid
                return handle
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_NOT_FOUND)

    def _count_error(self, code: int) -> None:
        self._session.count_error(code, self._label)

    def _slow_facts(self, handle: Any) -> _Slow:
        now = self._clock()
        if self._slow is not None and now - self._slow.read_at < self._slow_interval:
            return self._slow
        calls = Calls(self._count_error)
        mig_mode = mig.enabled(calls, handle)
        parts = mig.parts(calls, handle) if mig_mode else ()
        values = telemetry.thresholds(calls, handle)
        values += telemetry.processes(calls, handle)
        values += read_links(calls, handle)
        return _Slow(now, tuple(values), tuple(calls.gaps()), calls.seconds, mig_mode, parts)

    def _fast_values(self, calls: Calls, handle: Any) -> list[Value]:
        values = read_fields(calls, handle, self._session.driver_major)
        values += telemetry.power(calls, handle, {value.family for value in values})
        values += telemetry.utilization(calls, handle)
        values += telemetry.temperature(calls, handle)
        values += telemetry.clocks(calls, handle)
        return values

    def _memory(self, calls: Calls, handle: Any, parts: tuple[mig.Part, ...]) -> list[Point]:
        """Of the MIG parts where there are any, lest a sum count bytes twice; else of the GPU."""
        owners = [(part.handle, *self._part_labels(part)) for part in parts]
        return [
            value.point(gpu, uuid)
            for owner, gpu, uuid in owners or [(handle, self._label, self._uuid)]
            for value in telemetry.memory(calls, owner)
        ]

    def _part_labels(self, part: mig.Part) -> tuple[str, str]:
        return f"{self._label}/{part.instance}", part.uuid

    def _info(self, gpu: _Gpu, parts: tuple[mig.Part, ...]) -> list[Point]:
        driver = self._session.driver_version
        identities = [(self._label, self._uuid, gpu.name, driver, "")]
        identities += [(*self._part_labels(p), p.name, driver, p.profile) for p in parts]
        return [Point(names.GPU_INFO, identity, 1.0) for identity in identities]

    def _costs(self, seconds: dict[str, float]) -> list[Point]:
        return [
            Point(names.GPU_CALL_SECONDS, (self._label, self._uuid, call), cost, call)
            for call, cost in seconds.items()
        ]


class _Moments:
    """n, sum and sum of squares of utilisation, for the life of the process.

    They outlive a lost GPU, so that the counters do not go backwards when it returns.
    """

    def __init__(self) -> None:
        self._n = 0
        self._sum = 0.0
        self._squares = 0.0

    def add(self, values: list[Value]) -> list[Value]:
        """Takes the utilisation among the values, if there; returns the counters, if they began."""
        for value in values:
            if value.family is names.GPU_UTILIZATION:
                self._n += 1
                self._sum += value.value
                self._squares += value.value**2
        if not self._n:
            return []
        return [
            Value(names.GPU_UTILIZATION_N, (), float(self._n), "counted by inferslo"),
            Value(names.GPU_UTILIZATION_SUM, (), self._sum, "counted by inferslo"),
            Value(names.GPU_UTILIZATION_SQUARES, (), self._squares, "counted by inferslo"),
        ]
