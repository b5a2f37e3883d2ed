"""What went wrong with the GPUs, as counters: Xid events, and driver calls that failed."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pynvml

from ..names import GPU_XID_EVENTS, GPU_XID_LAST
from ..reading import Gap, Observation, Point, SourceError
from .errors import ABSENT, TIMEOUT, gap, return_code
from .session import Session

_PAUSE_WITHOUT_EVENTS = 2.0


class XidSource:
    """Waits for Xid events. One read waits for one event, or for `wait` seconds.

    Counters by GPU and Xid since the start of the process, and the time of the last; and the calls
    that failed in any source of the session. They are published also while NVML is down: the last
    Xid of a GPU that fell off the bus, and the code that NVML fails with, are the ones to know.
    Events before the start are not replayed by the driver.
    """

    name = "gpu-events"

    def __init__(
        self,
        session: Session,
        *,
        wait: float = 0.5,
        deadline: float = 10.0,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.deadline = deadline
        self._session = session
        self._wait = wait
        self._wall = wall
        self._generation = 0
        self._set: Any = None
        self._gpus: dict[int, tuple[str, str]] = {}  # by address of the handle: label, UUID
        self._gaps: dict[str, Gap] = {}  # by UUID
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._last: dict[tuple[str, str, str], float] = {}

    @property
    def interval(self) -> float:
        """Reads follow each other at once while there is something to wait for."""
        return 0.0 if self._gpus else _PAUSE_WITHOUT_EVENTS

    def up_point(self, up: bool) -> None:
        """A GPU's health is told by its own source."""

    def observe(self) -> Observation:
        """Raises SourceError if NVML is down and there is nothing to tell."""
        try:
            with self._session.borrow() as generation:
                blind = self._listen(generation)
        except SourceError as error:
            self._gpus = {}
            if not self._points():
                raise
            blind = [Gap(GPU_XID_EVENTS.name, error.detail, "it is tried again")]
        return Observation(tuple(self._points()), (*blind, *self._gaps.values()))

    def _listen(self, generation: int) -> list[Gap]:
        try:
            self._register(generation)
            self._receive()
        except pynvml.NVMLError as error:
            self._session.count_error(return_code(error))
            self._forget()
            return [gap(GPU_XID_EVENTS.name, "nvmlEventSetWait", return_code(error))]
        return []

    def _register(self, generation: int) -> None:
        """Takes every GPU that has answered into the event set; anew for a new generation."""
        if generation != self._generation:
            self._generation, self._set, self._gpus, self._gaps = generation, None, {}, {}
        known = {uuid for _, uuid in self._gpus.values()} | set(self._gaps)
        for uuid, label in self._session.labels().items():
            if uuid not in known:
                self._take(uuid, label)

    def _take(self, uuid: str, label: str) -> None:
        if self._set is None:
            self._set = pynvml.nvmlEventSetCreate()
        call = "nvmlDeviceRegisterEvents"
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except pynvml.NVMLError as error:
            if return_code(error) not in ABSENT:
                self._session.count_error(return_code(error), label)
            self._gaps[uuid] = gap(
                f"{GPU_XID_EVENTS.name} of GPU {label}", call, return_code(error)
            )
        else:
            self._gpus[_address(handle)] = label, uuid

    def _receive(self) -> None:
        if not self._gpus:
            return
        try:
            event: Any = pynvml.nvmlEventSetWait(self._set, int(self._wait * 1000))
        except pynvml.NVMLError as error:
            if return_code(error) != TIMEOUT:
                raise
            return
        gpu = self._gpus.get(_address(event.device))
        if gpu is not None and event.eventType & pynvml.nvmlEventTypeXidCriticalError:
            key = (*gpu, str(event.eventData))
            self._counts[key] += 1
            self._last[key] = self._wall()

    def _forget(self) -> None:
        """The next read builds the set anew: without a GPU that is lost, with one that is back."""
        if self._set is not None:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(self._set)
        self._set, self._gpus, self._gaps = None, {}, {}

    def _points(self) -> list[Point]:
        counts = [Point(GPU_XID_EVENTS, key, float(n)) for key, n in self._counts.items()]
        times = [Point(GPU_XID_LAST, key, at) for key, at in self._last.items()]
        return [*counts, *times, *self._session.error_points()]


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
