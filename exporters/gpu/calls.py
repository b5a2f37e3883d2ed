"""The driver calls of one read of one GPU: timed, and what failed kept by return code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pynvml

from ..names import Family
from ..reading import Gap, Point
from .errors import ABSENT, GONE, NO_PERMISSION, NOT_SUPPORTED, DriverError, gap, return_code

Call = tuple[str, Callable[[], Any]]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of one GPU, in the family's unit. labels: those after `gpu` and `uuid`."""

    family: Family
    labels: tuple[str, ...]
    value: float
    origin: str

    def point(self, gpu: str, uuid: str) -> Point:
        return Point(self.family, (gpu, uuid, *self.labels), self.value, self.origin)


# What drivers and DCGM write where they have no value: the "blank" values of DCGM (integers of 32
# and 64 bits, floating point), and all ones. Exporters have published these as readings.
_BLANK = frozenset(
    [base + kind for base in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 1 << 47) for kind in range(4)]
    + [(1 << 32) - 1, (1 << 64) - 1]
)


def real(value: float | None) -> float | None:
    """The value, or None if it stands for "not available" or cannot be (negative)."""
    return None if value is None or value < 0 or value in _BLANK else float(value)


class Calls:
    """Built anew for each read. `on_error` hears the return code of each call that failed.

    seconds: what each call cost, by its NVML name. notes: gaps that no return code tells of.
    """

    def __init__(
        self, on_error: Callable[[int], None], *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._on_error = on_error
        self._clock = clock
        self._missed: dict[Family, tuple[str, int]] = {}
        self._worst: tuple[str, int] | None = None
        self.seconds: dict[str, float] = {}
        self.notes: list[Gap] = []

    def ask(self, feeds: Iterable[Family], *alternatives: Call) -> Any:
        """The answer of the first alternative that this driver has; None if it gives none.

        `feeds` are the families that are missing then. Raises DriverError if the code says that
        the GPU is gone.
        """
        failed: tuple[str, int] | None = None
        for name, function in alternatives:
            began = self._clock()
            try:
                return function()
            except pynvml.NVMLError as error:
                failed = name, return_code(error)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + self._clock() - began
            if failed[1] not in ABSENT:
                break
        if failed is not None:
            self.miss(feeds, *failed)
        return None

    def miss(self, feeds: Iterable[Family], call: str, code: int) -> None:
        """Notes that the families, or some values of them, are missing. Raises as `ask` does."""
        if code not in ABSENT and code != NO_PERMISSION:
            self._on_error(code)
            self._worst = self._worst or (call, code)
        if code in GONE:
            raise DriverError(code, call)
        for family in feeds:
            self._missed.setdefault(family, (call, code))

    def nothing(self) -> DriverError:
        """The error of a read in which the GPU gave no value at all."""
        call, code = self._worst or ("every call", NOT_SUPPORTED)
        return DriverError(code, call)

    def gaps(self) -> list[Gap]:
        """One per family, however many of its values are missing."""
        missed = [gap(family.name, call, code) for family, (call, code) in self._missed.items()]
        return missed + self.notes
