"""The sources that the settings ask for."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from ..exporters.engines.source import EngineSource
from ..exporters.gateways import GatewaySource
from ..exporters.host import EngineAddress, HostSource
from ..exporters.http import HttpFetcher
from ..exporters.reading import ErrorKind, Gap, Source, SourceError
from .settings.model import Settings
from .settings.targets import Target
from .settings.values import read_token

Add = Callable[[Source], None]


def add_sources(settings: Settings, add: Add, at_end: ExitStack) -> tuple[Gap, ...]:
    """Adds them all; returns what is not watched and how to change that.

    at_end: gets what is to be closed once nothing is read any more.
    """
    for engine in settings.engines:
        add(
            EngineSource(
                engine.name,
                engine.metrics_url,
                _fetcher(settings, engine),
                engine.type,
                interval=settings.poll_interval,
                deadline=_patience(settings),
                kv_cache_groups=engine.kv_cache_groups,
            )
        )
    for gateway in settings.litellm:
        add(
            GatewaySource(
                gateway.name,
                gateway.metrics_url,
                _fetcher(settings, gateway),
                settings.poll_interval,
                _patience(settings),
            )
        )
    if settings.host:
        addresses = [EngineAddress(e.name, *_address(e.url)) for e in settings.engines]
        add(HostSource(addresses, settings.host_root))  # at its own, slower pace: 20 ms a read
    return (*_add_gpu(settings, add, at_end), *_not_watched(settings))


def _add_gpu(settings: Settings, add: Add, at_end: ExitStack) -> Iterable[Gap]:
    if settings.gpu == "off":
        yield Gap("gpu", "switched off", "--gpu auto")
    elif not reads_gpu(settings):
        yield Gap(
            "gpu",
            "no NVIDIA driver library (libnvidia-ml.so.1) in this container or machine",
            "give the sidecar NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility"
            " with the nvidia runtime class; --gpu on makes its absence an error",
        )
    else:
        from ..exporters.gpu.nvml import NvmlRoot

        root = NvmlRoot(
            add,
            settings.gpu_expected,
            interval=settings.gpu_interval,
            device_interval=settings.gpu_interval,
        )
        # Killed in mid-call, a monitor has been seen to freeze a GPU.
        at_end.callback(root.close)
        add(root)


def reads_gpu(settings: Settings) -> bool:
    """Whether GPUs are asked for, by name or because the driver's library is here."""
    return settings.gpu == "on" or (settings.gpu == "auto" and driver_is_here())


def driver_is_here() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _not_watched(settings: Settings) -> Iterable[Gap]:
    if not settings.engines:
        yield Gap("engine", "no engine is configured", "--engine http://HOST:PORT")
    if not settings.litellm:
        yield Gap("gateway", "no gateway is configured", "--litellm http://HOST:PORT")
    if not settings.host:
        yield Gap("host", "switched off", "--host on")
    if not settings.events:
        yield Gap("events", "switched off", "--events on")


def _fetcher(settings: Settings, target: Target) -> HttpFetcher:
    token_file = settings.token_file(target)
    return HttpFetcher(
        deadline=settings.read_deadline,
        max_bytes=settings.max_page_bytes,
        bearer_token=partial(_token_now, token_file) if token_file else None,
        ca_file=target.ca_file,
        verify=not target.insecure_skip_verify,
    )


def _token_now(path: Path) -> str:
    try:
        return read_token(path)
    except ValueError as error:
        raise SourceError(ErrorKind.UNREADABLE, str(error)) from error


def _patience(settings: Settings) -> float:
    """One read asks for the page and, after a start of the engine, for its version."""
    return 2 * settings.read_deadline + 1


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
