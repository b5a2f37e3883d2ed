"""The NVML fields that are read in one batch, as data, and how one entry becomes a value.

Ids, units and scopes are those of nvml.h ("Field Identifiers"): power in mW, energy in mJ,
clock-event counters in ns, thermal limits as margins in degrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from .. import names
from ..names import Family
from .calls import Calls, Value, real
from .errors import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_SUPPORTED

CALL = "nvmlDeviceGetFieldValues"


@dataclass(frozen=True, slots=True)
class Field:
    """One field: the family it feeds, the labels after `gpu` and `uuid`, NVML's unit to ours.

    driver: major version of the driver from which on the id means this.
    """

    id: int
    family: Family
    labels: tuple[str, ...] = ()
    scale: float = 1.0
    signed: bool = False
    driver: int = 0

    @property
    def origin(self) -> str:
        return f"NVML field {self.id}"

    def value(self, number: float) -> Value:
        """The published value of a number in NVML's unit."""
        return Value(self.family, self.labels, number * self.scale, self.origin)


def _clock_event(id: int, reason: str, driver: int = 0) -> Field:
    return Field(id, names.GPU_CLOCK_EVENT_SECONDS, (reason,), 1e-9, driver=driver)


def _ecc(id: int, severity: str, counter: str) -> Field:
    return Field(id, names.GPU_ECC_ERRORS, (severity, counter))


def _limit(id: int, limit: str) -> Field:
    return Field(id, names.GPU_TEMPERATURE_LIMIT_MARGIN, (limit,), signed=True)


def _pcie(id: int, kind: str) -> Field:
    return Field(id, names.GPU_PCIE_ERRORS, (kind,))


def _nvlink(id: int, kind: str) -> Field:
    return Field(id, names.GPU_NVLINK_ERRORS, (kind,))


FIELDS: Sequence[Field] = (
    Field(pynvml.NVML_FI_DEV_MEMORY_TEMP, names.GPU_TEMPERATURE, ("memory",)),
    _limit(pynvml.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, "shutdown"),
    _limit(pynvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, "slowdown"),
    _limit(pynvml.NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, "memory_max"),
    _limit(pynvml.NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, "gpu_max"),
    Field(pynvml.NVML_FI_DEV_POWER_AVERAGE, names.GPU_POWER, ("average",), 1e-3),
    Field(pynvml.NVML_FI_DEV_POWER_INSTANT, names.GPU_POWER, ("instant",), 1e-3),
    Field(pynvml.NVML_FI_DEV_POWER_CURRENT_LIMIT, names.GPU_POWER_LIMIT, (), 1e-3),
    Field(pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, names.GPU_ENERGY, (), 1e-3),
    _clock_event(pynvml.NVML_FI_DEV_PERF_POLICY_POWER, "sw_power_cap"),
    _clock_event(pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL, "thermal"),
    _clock_event(pynvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, "sync_boost"),
    # NVIDIA moved these three: 251 to 253 in drivers 575 and 580, where 269 to 271 are settings of
    # power smoothing; releases of nvidia-ml-py differ likewise. So neither its names nor a guess.
    _clock_event(269, "sw_thermal_slowdown", driver=590),
    _clock_event(270, "hw_thermal_slowdown", driver=590),
    _clock_event(271, "hw_power_brake_slowdown", driver=590),
    _ecc(pynvml.NVML_FI_DEV_ECC_SBE_VOL_TOTAL, "corrected", "volatile"),
    _ecc(pynvml.NVML_FI_DEV_ECC_DBE_VOL_TOTAL, "uncorrected", "volatile"),
    _ecc(pynvml.NVML_FI_DEV_ECC_SBE_AGG_TOTAL, "corrected", "aggregate"),
    _ecc(pynvml.NVML_FI_DEV_ECC_DBE_AGG_TOTAL, "uncorrected", "aggregate"),
    Field(pynvml.NVML_FI_DEV_REMAPPED_COR, names.GPU_REMAPPED_ROWS, ("corrected",)),
    Field(pynvml.NVML_FI_DEV_REMAPPED_UNC, names.GPU_REMAPPED_ROWS, ("uncorrected",)),
    Field(pynvml.NVML_FI_DEV_REMAPPED_PENDING, names.GPU_ROW_REMAP_PENDING),
    Field(pynvml.NVML_FI_DEV_REMAPPED_FAILURE, names.GPU_ROW_REMAP_FAILED),
    Field(pynvml.NVML_FI_DEV_RETIRED_SBE, names.GPU_RETIRED_PAGES, ("corrected",)),
    Field(pynvml.NVML_FI_DEV_RETIRED_DBE, names.GPU_RETIRED_PAGES, ("uncorrected",)),
    Field(pynvml.NVML_FI_DEV_RETIRED_PENDING, names.GPU_PAGE_RETIREMENT_PENDING),
    Field(pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, names.GPU_RECOVERY_ACTION),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "crc_flit"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, "crc_data"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, "replay"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, "recovery"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER, "replay"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, "correctable"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED, "naks_received"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR, "receiver"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_BAD_TLP, "bad_tlp"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_NAKS_SENT, "naks_sent"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_BAD_DLLP, "bad_dllp"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, "non_fatal"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, "fatal"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ, "unsupported_request"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR, "lcrc"),
    _pcie(pynvml.NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, "lane"),
)

# Newer GPUs count these per link (the scope of the field); we publish the sum over the links.
LINK_FIELDS: Sequence[Field] = (
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, "dl_replay"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, "dl_recovery"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC, "dl_crc"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, "receive"),
    _nvlink(pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, "link_recovery_failed"),
)

_LINK_COUNT = pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT
_MEMBERS = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


def read_fields(calls: Calls, handle: Any, driver: int) -> list[Value]:
    """Reads FIELDS in one call. What is not there is noted in `calls`, value by value.

    driver: major version of the driver.
    """
    for field in FIELDS:
        if driver < field.driver:
            calls.miss([field.family], field.origin, FUNCTION_NOT_FOUND)
    wanted = [(field, 0) for field in FIELDS if driver >= field.driver]
    numbers = _read(calls, handle, wanted)
    return [field.value(number) for field, number in numbers if number is not None]


def read_links(calls: Calls, handle: Any) -> list[Value]:
    """Reads LINK_FIELDS of every link in one call; a sum only where every link answered."""
    wanted = [(field, link) for field in LINK_FIELDS for link in range(_links(calls, handle))]
    sums: dict[Field, float | None] = {field: 0.0 for field, _ in wanted}
    for field, number in _read(calls, handle, wanted):
        total = sums[field]
        sums[field] = None if total is None or number is None else total + number
    return [field.value(total) for field, total in sums.items() if total is not None]


def _links(calls: Calls, handle: Any) -> int:
    entries = _ask(calls, handle, [names.GPU_NVLINK_ERRORS], [(_LINK_COUNT, 0)])
    return int(entries[0].value.uiVal) if entries and entries[0].nvmlReturn == 0 else 0


def _read(
    calls: Calls, handle: Any, wanted: Sequence[tuple[Field, int]]
) -> Iterator[tuple[Field, float | None]]:
    feeds = dict.fromkeys(field.family for field, _ in wanted)
    entries = _ask(calls, handle, feeds, [(field.id, scope) for field, scope in wanted])
    for (field, _), entry in zip(wanted, entries, strict=False):
        yield field, _accept(calls, field, entry)


def _ask(
    calls: Calls, handle: Any, feeds: Iterable[Family], ids: Sequence[tuple[int, int]]
) -> Sequence[Any]:
    before = calls.seconds.get(CALL, 0.0)
    entries = calls.ask(feeds, (CALL, lambda: pynvml.nvmlDeviceGetFieldValues(handle, ids)))
    # NVML's own figure leaves out the time that we waited for the interpreter.
    latency = sum(max(0, entry.latencyUsec) for entry in entries or ()) * 1e-6
    if latency:
        calls.seconds[CALL] = before + latency
    return entries or ()


def _accept(calls: Calls, field: Field, entry: Any) -> float | None:
    code = entry.nvmlReturn
    if code == INVALID_ARGUMENT:
        code = FUNCTION_NOT_FOUND  # of one entry it means that the driver does not know the field
    number = None if code else _number(field, entry)
    if number is None:
        calls.miss([field.family], field.origin, code or NOT_SUPPORTED)
    return number


def _number(field: Field, entry: Any) -> float | None:
    member = _MEMBERS.get(entry.valueType)
    if member is None:
        return None
    if not field.signed:
        return real(getattr(entry.value, member))
    # Drivers have typed margins as unsigned; the bits are those of a signed number.
    value = float(getattr(entry.value, "siVal" if member == "uiVal" else member))
    return None if real(abs(value)) is None else value
