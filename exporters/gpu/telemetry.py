"""What one GPU tells by calls of its own (the rest comes in one batch: fields.py).

Each function makes its calls through `Calls`, returns the values that the driver gave, and leaves
what it did not give to the gaps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import pynvml

from .. import names
from ..names import Family
from ..reading import Gap
from .calls import Calls, Value, real
from .errors import FUNCTION_NOT_FOUND, NOT_SUPPORTED

_MEMORY = (names.GPU_MEMORY_TOTAL, names.GPU_MEMORY_USED, names.GPU_MEMORY_FREE)
_UTILIZATION = (names.GPU_UTILIZATION, names.GPU_MEMORY_BANDWIDTH_UTILIZATION)
_CLOCKS = {"sm": pynvml.NVML_CLOCK_SM, "memory": pynvml.NVML_CLOCK_MEM}
_REASONS = {
    "gpu_idle": pynvml.nvmlClocksEventReasonGpuIdle,
    "application_clocks": pynvml.nvmlClocksEventReasonApplicationsClocksSetting,
    "sw_power_cap": pynvml.nvmlClocksEventReasonSwPowerCap,
    "hw_slowdown": pynvml.nvmlClocksEventReasonHwSlowdown,
    "sync_boost": pynvml.nvmlClocksEventReasonSyncBoost,
    "sw_thermal_slowdown": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
    "hw_thermal_slowdown": pynvml.nvmlClocksEventReasonHwThermalSlowdown,
    "hw_power_brake_slowdown": pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
    "display_clocks": pynvml.nvmlClocksEventReasonDisplayClockSetting,
}
_THRESHOLDS = {
    "shutdown": pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    "slowdown": pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    "memory_max": pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
    "gpu_max": pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
}


def memory(calls: Calls, handle: Any) -> list[Value]:
    """In bytes. The old call has no `reserved`: there it is part of `used`."""
    info = calls.ask(
        _MEMORY,
        (
            "nvmlDeviceGetMemoryInfo_v2",
            lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2),
        ),
        ("nvmlDeviceGetMemoryInfo", lambda: pynvml.nvmlDeviceGetMemoryInfo(handle)),
    )
    if info is None:
        return []
    numbers = {
        names.GPU_MEMORY_TOTAL: info.total,
        names.GPU_MEMORY_USED: info.used,
        names.GPU_MEMORY_FREE: info.free,
    }
    if hasattr(info, "reserved"):
        numbers[names.GPU_MEMORY_RESERVED] = info.reserved
    else:
        calls.miss([names.GPU_MEMORY_RESERVED], "nvmlDeviceGetMemoryInfo_v2", FUNCTION_NOT_FOUND)
    return _present(calls, "nvmlDeviceGetMemoryInfo", numbers)


def utilization(calls: Calls, handle: Any) -> list[Value]:
    """As ratios. `memory` is the time in which memory was busy, not how full it is."""
    call = "nvmlDeviceGetUtilizationRates"
    rates = calls.ask(_UTILIZATION, (call, lambda: pynvml.nvmlDeviceGetUtilizationRates(handle)))
    if rates is None:
        return []
    percent = dict(zip(_UTILIZATION, (rates.gpu, rates.memory), strict=True))
    ratios = {family: n / 100 if n <= 100 else None for family, n in percent.items()}
    return _present(calls, call, ratios)


def temperature(calls: Calls, handle: Any) -> list[Value]:
    """Of the GPU, and the degrees left until it acts."""
    sensor = pynvml.NVML_TEMPERATURE_GPU
    degrees = calls.ask(
        [names.GPU_TEMPERATURE],
        ("nvmlDeviceGetTemperatureV", lambda: pynvml.nvmlDeviceGetTemperatureV(handle, sensor)),
        ("nvmlDeviceGetTemperature", lambda: pynvml.nvmlDeviceGetTemperature(handle, sensor)),
    )
    call = "nvmlDeviceGetMarginTemperature"
    margin = calls.ask(
        [names.GPU_TEMPERATURE_MARGIN],
        (call, lambda: pynvml.nvmlDeviceGetMarginTemperature(handle)),
    )
    values = []
    if degrees is not None:
        number = {names.GPU_TEMPERATURE: degrees}
        values += _present(calls, "nvmlDeviceGetTemperature", number, "gpu")
    if margin is not None and real(abs(margin)) is not None:  # below 0 is past the limit
        values.append(Value(names.GPU_TEMPERATURE_MARGIN, (), float(margin), call))
    return values


def thresholds(calls: Calls, handle: Any) -> list[Value]:
    """Limits in degrees, where the GPU does not tell them as margins."""
    call = "nvmlDeviceGetTemperatureThreshold"
    values = []
    for limit, id in _THRESHOLDS.items():
        degrees = calls.ask(
            [names.GPU_TEMPERATURE_LIMIT],
            (call, partial(pynvml.nvmlDeviceGetTemperatureThreshold, handle, id)),
        )
        if degrees is not None:
            values += _present(calls, call, {names.GPU_TEMPERATURE_LIMIT: degrees}, limit)
    return values


def power(calls: Calls, handle: Any, known: Collection[Family]) -> list[Value]:
    """In watts, by the old calls; only what the fields did not tell (`known`)."""
    values = []
    if names.GPU_POWER not in known:
        call = "nvmlDeviceGetPowerUsage"
        milliwatts = calls.ask(
            [names.GPU_POWER], (call, lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
        )
        if (number := real(milliwatts)) is not None:
            values.append(Value(names.GPU_POWER, ("unspecified",), number / 1000, call))
    if names.GPU_POWER_LIMIT not in known:
        call = "nvmlDeviceGetEnforcedPowerLimit"
        milliwatts = calls.ask(
            [names.GPU_POWER_LIMIT], (call, lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        )
        if (number := real(milliwatts)) is not None:
            values.append(Value(names.GPU_POWER_LIMIT, (), number / 1000, call))
    return values


def clocks(calls: Calls, handle: Any) -> list[Value]:
    """In hertz, and the reasons for which they are held down at this moment."""
    values = []
    for domain, id in _CLOCKS.items():
        call = "nvmlDeviceGetClockInfo"
        megahertz = calls.ask(
            [names.GPU_CLOCK], (call, partial(pynvml.nvmlDeviceGetClockInfo, handle, id))
        )
        if (number := real(megahertz)) is not None:
            values.append(Value(names.GPU_CLOCK, (domain,), number * 1e6, call))
    call = "nvmlDeviceGetCurrentClocksEventReasons"
    old = "nvmlDeviceGetCurrentClocksThrottleReasons"
    active = calls.ask(
        [names.GPU_CLOCK_EVENT_ACTIVE],
        (call, lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
        (old, lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
    )
    if real(active) is not None:
        values += [
            Value(names.GPU_CLOCK_EVENT_ACTIVE, (reason,), float(bool(active & bit)), call)
            for reason, bit in _REASONS.items()
        ]
    return values


def processes(calls: Calls, handle: Any) -> list[Value]:
    """Count and memory of compute processes. None shown is unknown: a container may see none."""
    call = "nvmlDeviceGetComputeRunningProcesses"
    found = calls.ask(
        [names.GPU_PROCESSES, names.GPU_PROCESS_MEMORY],
        (f"{call}_v3", lambda: pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)),
        (f"{call}_v2", lambda: pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)),
    )
    if found is None:
        return []
    if not found:
        calls.notes.append(
            Gap(
                names.GPU_PROCESSES.name,
                "the driver shows no process; in a container that does not mean that there is none",
                "share the process namespace of the node (hostPID), if you need it",
            )
        )
        return []
    values = [Value(names.GPU_PROCESSES, (), float(len(found)), call)]
    used = [n for process in found if (n := real(process.usedGpuMemory)) is not None]
    if len(used) == len(found):
        values.append(Value(names.GPU_PROCESS_MEMORY, (), sum(used), call))
    else:  # the sum of those that are known would read as the sum of all
        calls.miss([names.GPU_PROCESS_MEMORY], call, NOT_SUPPORTED)
    return values


def _present(
    calls: Calls, call: str, numbers: Mapping[Family, float | None], *labels: str
) -> list[Value]:
    values = []
    for family, raw in numbers.items():
        if (number := real(raw)) is None:
            calls.miss([family], call, NOT_SUPPORTED)
        else:
            values.append(Value(family, labels, number, call))
    return values
