"""NVIDIA GPUs by NVML: the root source, which finds the GPUs and has one source for each started.

NVML calls cannot be interrupted. So every GPU is read in a thread of its own, none of these
touches another's GPU, and the root touches no GPU at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pynvml

from .. import names
from ..reading import (
    ErrorKind,
    FatalSourceError,
    Gap,
    Observation,
    Point,
    Source,
    SourceError,
)
from .device import DeviceSource
from .errors import UNKNOWN, DriverError, return_code
from .events import XidSource
from .session import Session

_MAX_PAUSE = 60.0
_MOST_GPUS = 256  # each is read in a thread of its own


class NvmlRoot:
    """Source "gpu". Hands `spawn` a source for each GPU it finds, and one for their Xid events.

    expected: number of GPUs that there should be; None takes the most ever seen. tries: after so
    many reads in a row in which every GPU answers "unknown error", only a new container helps, and
    the process ends. intervals and deadlines: seconds; without intervals it is for who reads by
    hand.
    """

    name = "gpu"

    def __init__(
        self,
        spawn: Callable[[Source], None],
        expected: int | None = None,
        *,
        interval: float = 0.0,
        deadline: float = 30.0,
        device_interval: float = 0.0,
        device_deadline: float = 10.0,
        tries: int = 5,
        session: Session | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.interval = interval
        self.deadline = deadline
        self._spawn = spawn
        self._expected = expected
        self._most = 0
        self._device_interval = device_interval
        self._device_deadline = device_deadline
        self._tries = tries
        self._session = session or Session()
        self._clock = clock
        self._wall = wall
        self._devices: list[DeviceSource] = []
        self._events: XidSource | None = None
        self._not_before = 0.0
        self._pause = interval
        self._failure: DriverError | None = None
        self._unknown = 0

    def up_point(self, up: bool) -> Point | None:
        """Without NVML no GPU has a source of its own to say that it is not up."""
        return None if up else Point(names.GPU_UP, ("", ""), 0.0)

    def observe(self) -> Observation:
        """Raises DriverError, SourceError (no GPU), or FatalSourceError (see `tries`)."""
        if self._events is None:
            # Before NVML is first called: it tells which driver calls failed, whatever becomes of
            # this source.
            self._events = XidSource(self._session, wall=self._wall)
            self._spawn(self._events)
        try:
            self._initialise()
            count = self._count()
        except DriverError as error:
            self._unknown = self._unknown + 1 if error.code == UNKNOWN else 0
            self._judge(self._unknown)
            raise
        self._unknown = 0
        self._judge(min((device.unknown for device in self._devices), default=0))
        if not count:
            self._session.suspect = True
            raise SourceError(
                ErrorKind.NO_DEVICE,
                "NVML finds no GPU: check that the container was given one"
                " (NVIDIA_VISIBLE_DEVICES, device plugin), or switch GPU reading off",
            )
        if count > _MOST_GPUS:
            raise SourceError(
                ErrorKind.DRIVER,
                f"NVML tells {count} GPUs, more than the {_MOST_GPUS} that are read: no node has"
                " so many, so the driver is broken: drain the node and reboot it",
            )
        self._most = max(self._most, count)
        self._start_sources(count)
        return self._observation()

    def close(self) -> bool:
        """Shuts NVML down at the end of the process; False if a stuck call forbids it."""
        return self._session.close()

    def _initialise(self) -> None:
        """At the first read, and again when a source met an error that nothing else can mend."""
        if self._session.opened and not self._session.suspect:
            return
        if self._clock() < self._not_before:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            return
        if any(device.hung for device in self._devices):
            return  # a call is stuck: NVML must not be shut down under it
        self._failure = None
        try:
            self._session.open()
        except DriverError as error:
            self._failure = error
            raise
        finally:
            self._back_off()

    def _back_off(self) -> None:
        """Puts off the next initialisation, but not while `tries` are counted."""
        if self._failure is not None and self._failure.code == UNKNOWN:
            return
        self._not_before = self._clock() + self._pause
        self._pause = min(2 * self._pause, _MAX_PAUSE)

    def _count(self) -> int:
        try:
            with self._session.borrow():
                count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            self._session.count_error(return_code(error))
            self._session.suspect = True
            raise DriverError(return_code(error), "nvmlDeviceGetCount") from None
        return count

    def _judge(self, unknown: int) -> None:
        """Ends the process after too many unknown errors in a row, of NVML or of every GPU."""
        if unknown >= self._tries:
            raise FatalSourceError(
                ErrorKind.DRIVER,
                f"NVML, or every GPU, answered code {UNKNOWN} (unknown error) {unknown} times in a"
                " row: this container has lost its devices for good (systemctl daemon-reload does"
                " that) and must be created anew; the process ends so that the kubelet does it",
            )

    def _start_sources(self, count: int) -> None:
        for index in range(len(self._devices), count):
            device = DeviceSource(
                self._session,
                index,
                interval=self._device_interval,
                deadline=self._device_deadline,
                clock=self._clock,
            )
            self._devices.append(device)
            self._spawn(device)

    def _observation(self) -> Observation:
        devices = self._devices
        expected = self._expected if self._expected is not None else self._most
        points = [Point(names.GPU_EXPECTED, (), float(expected))]
        if all(d.hung or d.answered is not None for d in devices):
            visible = sum(d.answered is True and not d.hung for d in devices)
            points.append(Point(names.GPU_VISIBLE, (), float(visible)))
        if all(d.answered and not d.hung for d in devices):
            self._not_before, self._pause = 0.0, self.interval
        facts = {"driver_version": self._session.driver_version, "found": str(len(devices))}
        return Observation(tuple(points), self._stuck(), facts)

    def _stuck(self) -> tuple[Gap, ...]:
        hung = ", ".join(device.name for device in self._devices if device.hung)
        if not hung:
            return ()
        return (
            Gap(
                names.GPU_UP.name,
                f"the driver does not return from a call about {hung}",
                "such a call cannot be ended, and NVML is not initialised again meanwhile: drain"
                " the node and reboot it",
            ),
        )
