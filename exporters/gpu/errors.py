"""What an NVML return code means for the operator: one error kind and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..reading import ErrorKind, Gap, SourceError

NOT_INITIALISED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18
ARGUMENT_VERSION = 25
DEPRECATED = 26
GPU_NOT_FOUND = 28
UNKNOWN = 999

# This GPU or this driver does not have the call: no failure, and another call may be tried.
ABSENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION, DEPRECATED})
# Whatever else the GPU still answers, nothing of this read can be trusted.
GONE = frozenset(
    {NOT_INITIALISED, DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH,
     GPU_NOT_FOUND}
)  # fmt: skip

_LOST = (
    ErrorKind.GPU_LOST,
    "the GPU does not answer: see the node's kernel log for Xid, then reset the GPU or reboot",
)
_MEANING: Mapping[int, tuple[ErrorKind, str]] = {
    NOT_INITIALISED: (ErrorKind.DRIVER, "NVML is not initialised; it is tried again"),
    INVALID_ARGUMENT: _LOST,
    NO_PERMISSION: (
        ErrorKind.NO_PERMISSION,
        "the driver refuses this user: let the container see /dev/nvidiactl and /dev/nvidia*",
    ),
    NOT_FOUND: _LOST,
    DRIVER_NOT_LOADED: (
        ErrorKind.LIBRARY_MISSING,
        "the NVIDIA driver is not loaded on this node: no GPU is read, all else goes on",
    ),
    LIBRARY_NOT_FOUND: (
        ErrorKind.LIBRARY_MISSING,
        (
            "libnvidia-ml.so.1 is not there: no GPU is read, all else goes on. If the node has a"
            " GPU, start the container with runtimeClassName nvidia and"
            " NVIDIA_DRIVER_CAPABILITIES=utility"
        ),
    ),
    GPU_IS_LOST: _LOST,
    RESET_REQUIRED: _LOST,
    VERSION_MISMATCH: (
        ErrorKind.DRIVER_MISMATCH,
        (
            "the driver was upgraded under this process and libnvidia-ml no longer fits it: restart"
            " this container, and reboot the node if that does not help"
        ),
    ),
    GPU_NOT_FOUND: _LOST,
    UNKNOWN: (
        ErrorKind.DRIVER,
        (
            "the GPU answers with an unknown error: it fell off the bus, or the container lost its"
            " devices (systemctl daemon-reload does that); then re-create the container"
        ),
    ),
}

_EXPECTED: Mapping[str, str] = {
    "nvmlDeviceGetMemoryInfo": "expected where CPU and GPU share one memory (GB10): watch"
    " inferslo_container_memory_bytes instead",
    "nvmlDeviceGetMemoryInfo_v2": "driver R510 or newer; until then `used` includes it",
    "nvmlDeviceGetUtilizationRates": "expected under MIG: NVML has no utilisation of a part",
}


def return_code(error: Any) -> int:
    """Of a pynvml.NVMLError, which sets `value` where type checkers do not see it."""
    return int(error.value)


class DriverError(SourceError):
    """A read failed because of what the driver answered. code: the NVML return code."""

    def __init__(self, code: int, call: str) -> None:
        kind, advice = _MEANING.get(
            code, (ErrorKind.DRIVER, "the driver failed; it is tried again at the next read")
        )
        super().__init__(kind, f"{call}: NVML code {code}: {advice}")
        self.code = code


def gap(signal: str, call: str, code: int) -> Gap:
    """Says of a family that this read did not get it. code: the NVML return code."""
    if code == NO_PERMISSION:
        remedy = "run the sidecar with the rights that the driver asks for (MIG: as root)"
    elif code in ABSENT and call in _EXPECTED:
        remedy = _EXPECTED[call]
    elif code in {FUNCTION_NOT_FOUND, ARGUMENT_VERSION}:
        remedy = "a newer driver may have it"
    elif code in {NOT_SUPPORTED, DEPRECATED, INVALID_ARGUMENT}:
        remedy = "none: this GPU, or its present mode, does not have it"
    else:
        remedy = "it is tried again at the next read"
    return Gap(signal, f"{call} answers NVML code {code}", remedy)
