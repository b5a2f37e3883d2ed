"""The one NVML initialisation of this process, shared by the sources that read GPUs.

NVML is initialised for the whole process, so only one party may shut it down, and never while
another is inside a call: that call may be stuck in the driver for ever. Sources therefore borrow
the session for the length of a read. The lock is held for a few assignments only and never over a
driver call, so a thread that hangs in the driver blocks no other.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

import pynvml

from ..names import GPU_ERRORS
from ..reading import ErrorKind, Point, SourceError
from .errors import DriverError, return_code


class Session:
    """Opened and closed by the root source only; borrowed by all.

    generation: grows with every initialisation; handles of an older one are void.
    suspect: a borrower met an error that only a new initialisation can mend.
    """

    def __init__(self, *, patience: float = 1.5) -> None:
        self._patience = patience
        self._turn = threading.Condition()
        self._borrowed = 0
        self._changing = False
        self._opened = False
        self._labels: dict[str, str] = {}
        self._errors: Counter[tuple[str, int]] = Counter()
        self.generation = 0
        self.driver_version = ""
        self.suspect = False

    @property
    def opened(self) -> bool:
        return self._opened

    @property
    def driver_major(self) -> int:
        """As in 590; 0 if the driver's version cannot be read."""
        major = self.driver_version.partition(".")[0]
        return int(major) if major.isdecimal() else 0

    @contextlib.contextmanager
    def borrow(self) -> Iterator[int]:
        """Yields the generation. Raises SourceError while NVML is down or being initialised."""
        with self._turn:
            # Longer than the root waits for borrowers, so that its success costs nobody a read.
            self._turn.wait_for(lambda: not self._changing, 2 * self._patience)
            if self._changing or not self._opened:
                raise SourceError(ErrorKind.DRIVER, "NVML is down; the source `gpu` says why")
            self._borrowed += 1
        try:
            yield self.generation
        finally:
            with self._turn:
                self._borrowed -= 1
                self._turn.notify_all()

    def open(self) -> bool:
        """Initialises NVML, after a shutdown if it was open. False if a call is under way.

        Raises DriverError; NVML is down then.
        """
        if not self._begin_change():
            return False
        call = "nvmlInit"
        try:
            self._shutdown()
            pynvml.nvmlInit()
            call = "nvmlSystemGetDriverVersion"
            self.driver_version = str(pynvml.nvmlSystemGetDriverVersion())
            self.generation += 1
            self.suspect = False
            self._opened = True
        except pynvml.NVMLError as error:
            self.count_error(return_code(error))
            raise DriverError(return_code(error), call) from None
        finally:
            self._end_change()
        return True

    def close(self) -> bool:
        """Shuts NVML down. False if a call is under way: then the end of the process does it."""
        if not self._begin_change():
            return False
        try:
            self._shutdown()
        finally:
            self._end_change()
        return True

    def label(self, uuid: str, wanted: str) -> str:
        """The value of the label `gpu` for this UUID: what it first was, else `wanted`."""
        with self._turn:
            return self._labels.setdefault(uuid, wanted)

    def labels(self) -> dict[str, str]:
        """Label by UUID of every GPU that ever answered."""
        with self._turn:
            return dict(self._labels)

    def count_error(self, code: int, gpu: str = "") -> None:
        """A driver call failed; `gpu` is the label of the GPU that it was about."""
        with self._turn:
            self._errors[gpu, code] += 1

    def error_points(self) -> list[Point]:
        """Counted here and not in the sources, because a failed read publishes nothing."""
        with self._turn:
            uuids = {label: uuid for uuid, label in self._labels.items()}
            return [
                Point(GPU_ERRORS, (gpu, uuids.get(gpu, ""), str(code)), float(n))
                for (gpu, code), n in sorted(self._errors.items())
            ]

    def _begin_change(self) -> bool:
        with self._turn:
            self._changing = True
            if self._turn.wait_for(lambda: not self._borrowed, self._patience):
                return True
            self._changing = False
            self._turn.notify_all()
            return False

    def _end_change(self) -> None:
        with self._turn:
            self._changing = False
            self._turn.notify_all()

    def _shutdown(self) -> None:
        if self._opened:
            self._opened = False
            with contextlib.suppress(pynvml.NVMLError):  # a driver that is gone says so
                pynvml.nvmlShutdown()
