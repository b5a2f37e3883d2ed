"""The parts of a GPU in MIG mode (Multi-Instance GPU)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pynvml

from ..names import GPU_INFO
from .calls import Calls
from .errors import NOT_FOUND, return_code

_PROFILE = re.compile(r"MIG (\S+)$")


@dataclass(frozen=True, slots=True)
class Part:
    """One GPU instance: the unit that owns memory. profile: as in "1g.10gb"."""

    handle: Any
    instance: int
    uuid: str
    name: str
    profile: str


def enabled(calls: Calls, handle: Any) -> bool:
    """Whether the GPU is in MIG mode now."""
    mode = calls.ask((), ("nvmlDeviceGetMigMode", lambda: pynvml.nvmlDeviceGetMigMode(handle)))
    return bool(mode and mode[0])


def parts(calls: Calls, handle: Any) -> tuple[Part, ...]:
    """The GPU instances that this process may see, each once.

    Several MIG devices (compute instances) can share one GPU instance and then show the same
    memory: the first stands for all.
    """
    found: dict[int, Part] = {}
    for device in _devices(calls, handle):
        part = calls.ask([GPU_INFO], ("nvmlDeviceGetGpuInstanceId", partial(_part, device)))
        if part is not None:
            found.setdefault(part.instance, part)
    return tuple(found.values())


def _devices(calls: Calls, handle: Any) -> Iterator[Any]:
    call = "nvmlDeviceGetMigDeviceHandleByIndex"
    most = calls.ask(
        [GPU_INFO],
        ("nvmlDeviceGetMaxMigDeviceCount", lambda: pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)),
    )
    for index in range(most or 0):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except pynvml.NVMLError as error:
            if return_code(error) != NOT_FOUND:  # a slot that is free
                calls.miss([GPU_INFO], call, return_code(error))


def _part(device: Any) -> Part:
    name = str(pynvml.nvmlDeviceGetName(device))
    profile = _PROFILE.search(name)
    return Part(
        handle=device,
        instance=int(pynvml.nvmlDeviceGetGpuInstanceId(device)),
        uuid=str(pynvml.nvmlDeviceGetUUID(device)),
        name=name,
        profile=profile[1] if profile else name,
    )
