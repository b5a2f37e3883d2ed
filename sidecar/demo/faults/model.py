"""What a fault is: what goes wrong (`Effects`), when and how it grows, who says so (`Fault`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
Factor = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
_STRICT = ConfigDict(extra="forbid", frozen=True)


class Kill(BaseModel):
    """The process ends, with all that is in flight. every: again and again, seconds; None is
    once. rolling: one replica after the other. oom: for want of memory, inside its container."""

    model_config = _STRICT
    reload: Amount = 180.0
    every: float | None = None
    rolling: bool = False
    oom: bool = False


class Effects(BaseModel):
    """What is wrong at one moment. The defaults are a healthy service.

    Factors multiply what is normal, shares are of requests (or of the KV pool), rates are per
    hour and add up while the fault lasts.
    """

    model_config = _STRICT
    # Clients
    arrival_factor: Factor = 1.0
    turns_factor: Factor = 1.0  # requests for one turn of an agent that runs in a loop
    output_factor: Factor = 1.0
    long_share: Share = 0.0  # requests of `long_tokens` instead of what they were
    long_tokens: int = 24000
    slow_share: Share = 0.0  # requests that write eight times as much
    patience: float | None = None  # seconds until the client gives up
    leave_share: Share = 0.0  # clients that leave in mid-answer
    retries: int = 0
    pool_size: int | None = None  # connections of the client
    # Engine
    step_factor: Factor = 1.0
    prefill_factor: Factor = 1.0
    frontend_factor: Factor = 1.0
    kv_factor: Factor = 1.0
    kv_leak_per_hour: Share = 0.0
    hang: bool = False
    kill: Kill | None = None
    error_share: Share = 0.0
    empty_share: Share = 0.0
    queue_limit: int | None = None
    # GPU
    clock_factor: Factor = 1.0
    heat: Amount = 0.0  # °C above what the load explains
    neighbour: Share = 0.0  # of the GPU, taken by another process
    swing: Share = 0.0  # utilisation that comes and goes
    gpu_leak_gib_per_hour: Amount = 0.0
    stranded_gib_per_hour: Amount = 0.0
    ooms_per_hour: Mapping[str, Amount] = {}
    xid: int | None = None
    gpu_lost: bool = False
    # Host
    sockets: Mapping[str, Amount] = {}  # more of them, by state
    retransmit_share: Share = 0.0
    threads_per_hour: Amount = 0.0
    fds_per_hour: Amount = 0.0
    memory_gib_per_hour: Amount = 0.0
    # Gateway and business
    gateway_error_share: Share = 0.0
    fallback_share: Share = 0.0
    format_error_share: Share = 0.0
    interruption_share: Share = 0.0  # of sessions
    regeneration_share: Share = 0.0
    failed_checks: Mapping[str, Share] = {}  # share that fails, by check


HEALTHY = Effects()


class Fault(BaseModel):
    """One fault. start: seconds after it is armed; duration: seconds, None is for ever.

    ramp: seconds in which the numbers grow from healthy to what is written. every, lasting: the
    fault comes back, and how long it stays each time. replica: index of the only one that has it.
    expect: the alerts that name it; one of them is enough. The ids of our catalogue are F1 to F37;
    D is of the demo alone.
    """

    model_config = _STRICT
    id: Annotated[str, Field(pattern=r"^[FD][1-9][0-9]?$")]
    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    title: str
    effects: Effects
    start: Amount = 0.0
    duration: float | None = 1800.0
    ramp: Amount = 0.0
    every: float | None = None
    lasting: float | None = None
    replica: int | None = None
    # The service at which it shows, where that matters: requests a minute, engines, engines that
    # share a sidecar.
    rate: float | None = None
    replicas: int | None = None
    per_host: int = 1
    expect: tuple[str, ...]

    def strength(self, since: float) -> float:
        """0 (not there) to 1, so many seconds after it was armed."""
        age = since - self.start
        if age < 0 or (self.duration is not None and age >= self.duration):
            return 0.0
        if self.every is not None and self.lasting is not None and age % self.every >= self.lasting:
            return 0.0
        return min(age / self.ramp, 1.0) if self.ramp else 1.0


def combined(present: Iterable[tuple[Effects, float]]) -> Effects:
    """Several effects, each at its strength: factors multiply, shares and rates add up, of limits
    the last one counts."""
    total: dict[str, Any] = {}
    for effects, strength in present:
        if strength <= 0:
            continue
        for name in effects.model_fields_set:
            total[name] = _merged(name, total.get(name), getattr(effects, name), strength)
    return HEALTHY.model_copy(update=total) if total else HEALTHY


def _merged(name: str, before: Any, value: Any, strength: float) -> Any:
    if name.endswith("_factor"):
        return (1.0 if before is None else before) * (1 + (value - 1) * strength)
    if isinstance(value, Mapping):
        return {**(before or {}), **{key: each * strength for key, each in value.items()}}
    if isinstance(value, float) and name != "patience":
        most = 1.0 if name.endswith("_share") or name in ("neighbour", "swing") else float("inf")
        return min((before or 0.0) + value * strength, most)
    return value
