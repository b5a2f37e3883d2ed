"""Puts the sidecar together from its settings and runs it until it is told to stop."""

from __future__ import annotations

import gc
import logging
import os
import platform
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry, ProcessCollector

from ..exporters import names
from ..exporters.reading import FatalSourceError, Point
from .app import create_app
from .board import Board
from .errors import StartError
from .events.api import events_router
from .events.business import Business
from .events.journal import Journal, JournalError
from .events.tally import Limits
from .impatience import ImpatientProtocol
from .log import StateLog, fields
from .page.api import page_router
from .page.watch import Watch
from .poller import Poller
from .publisher import Publisher
from .settings.model import Settings, default_state
from .settings.values import read_token
from .sources import add_sources
from .status import status

if TYPE_CHECKING:
    from .demo.live.stage import Stage
    from .judge.loop import Judging

EXIT_OK, EXIT_FATAL = 0, 3
_GRACE_SECONDS = 5
_BACKLOG = 128
_UNREAD_MS = 30_000
_log = logging.getLogger(__name__)


Announce = Callable[[str, int], None]


def run(
    settings: Settings,
    announce: Announce = lambda _host, _port: None,
    stage: Stage | None = None,
) -> int:
    """Runs until SIGTERM (returns 0) or until only a new process can help (returns 3).

    SIGINT ends it as cleanly and then raises KeyboardInterrupt. Raises StartError if it cannot
    start: the port is in use, the journal cannot be used. announce: hears where it listens.
    stage: of the demo, in place of a real world.
    """
    with (
        _listening(settings) as listener,
        _business(settings) as business,
        _judging(settings) as judging,
    ):
        return _serve(settings, listener, business, judging, announce, stage)


def _serve(
    settings: Settings,
    listener: socket.socket,
    business: Business | None,
    judging: Judging | None,
    announce: Announce,
    stage: Stage | None,
) -> int:
    fatal: list[FatalSourceError] = []
    asked_to_stop = threading.Event()
    server: uvicorn.Server | None = None

    def stop(*_: object) -> None:
        asked_to_stop.set()
        if server is not None:
            server.should_exit = True

    def give_up(error: FatalSourceError) -> None:
        fatal.append(error)
        stop()

    board = Board(on_reading=StateLog(logging.getLogger("inferslo.sources")))
    poller = Poller(board, on_fatal=give_up)
    with _on_sigterm(stop), ExitStack() as at_end:
        not_watched = add_sources(settings, poller.add, at_end)
        _warn_of_nothing(gap.signal for gap in not_watched)
        if stage is not None:
            not_watched = ()  # what the settings leave out is on stage
            for source in stage.sources():
                poller.add(source)
            stage.report_to(business)
            at_end.callback(stage.report_to, None)
        at_end.callback(poller.stop)  # before the sources are closed
        publisher = _publisher(board, business, judging)
        events = _events(settings, business) if business else None
        watch = Watch(
            lambda: _points(board, business),
            lambda: status(board.states(), not_watched, business),
            judging,
        )
        page = page_router(watch, stage, stopping=lambda: server is None or server.should_exit)
        app = create_app(
            board, publisher,
            events=events, not_watched=not_watched, business=business, judging=judging, page=page,
            demo=stage.router if stage else None, on_loopback=_is_loopback(listener),
        )  # fmt: skip
        server = uvicorn.Server(_config(app, stage.headers if stage else ()))
        host, port = listener.getsockname()[:2]
        _log.info("listening", extra=fields(host=host, port=port))
        if stage is not None:
            _log.warning(stage.banner)
        announce(host, port)
        poller.watch()
        watch.start()
        at_end.callback(watch.stop)
        if judging is not None:
            judging.start(lambda: _points(board, business))
            at_end.callback(judging.stop)
        gc.freeze()  # what is there now stays: later collections need not walk it
        if not asked_to_stop.is_set():
            server.run(sockets=[listener])
    if fatal:
        _log.error("only a new process can help", extra=fields(detail=fatal[0].detail))
        return EXIT_FATAL
    _log.info("stopped")
    return EXIT_OK


def _is_loopback(listener: socket.socket) -> bool:
    return ip_address(listener.getsockname()[0]).is_loopback


def _warn_of_nothing(not_watched: Iterable[str]) -> None:
    """A sidecar for business events alone is one, but seldom what was meant."""
    if {"engine", "gateway", "gpu"} <= set(not_watched):
        _log.warning(
            "no engine, no gateway and no GPU to watch",
            extra=fields(
                remedy="name one with --engine http://HOST:PORT or --litellm http://HOST:PORT;"
                " inferslo up finds the engines of this machine"
            ),
        )


def _config(app: FastAPI, headers: Sequence[tuple[str, str]] = ()) -> uvicorn.Config:
    """headers: of every answer."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=ImpatientProtocol,
        ws="none",
        headers=list(headers),
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _points(board: Board, business: Business | None) -> list[Point]:
    build = Point(names.BUILD_INFO, (version("inferslo"), platform.python_version()), 1.0)
    return [build, *board.points(), *(business.points() if business else ())]


def _publisher(board: Board, business: Business | None, judging: Judging | None) -> Publisher:
    return Publisher(
        lambda: [*_points(board, business), *(judging.points() if judging else ())],
        lambda: (
            board.version,
            business.version if business else 0,
            judging.version if judging else 0,
        ),
        extra=ProcessCollector(registry=CollectorRegistry()),
    )


def _events(settings: Settings, business: Business) -> APIRouter:
    token = read_token(settings.events_token_file) if settings.events_token_file else None
    return events_router(business, token, settings.events_max_body)


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    host, port = settings.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name their protocol, as create_server's do not:
    # without it every answer on a kept connection waits 40 ms for the peer's delayed ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by connections: what was sent to a peer that is gone, or reads nothing, is kept
        # for so long and no longer.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        resolved = not isinstance(error, socket.gaierror)
        reason = os.strerror(error.errno or 0) if resolved else error.strerror
        raise StartError(
            f"cannot listen on {settings.listen}: {reason}; choose another --listen"
        ) from error
    with listener:
        yield listener


@contextmanager
def _business(settings: Settings) -> Iterator[Business | None]:
    if not settings.events:
        yield None
        return
    _make_default_folder(
        settings.events_journal, "events.db",
        "name a file with --events-journal, or take no events with --events off",
    )  # fmt: skip
    limits = Limits(
        label_values=settings.events_label_values_max, series=settings.events_series_max
    )
    try:
        business = Business(Journal(settings.events_journal), limits)
    except JournalError as error:
        raise StartError(str(error)) from error
    try:
        yield business
    finally:
        business.close()


@contextmanager
def _judging(settings: Settings) -> Iterator[Judging | None]:
    if settings.slo is None:
        yield None
        return
    from .judge.start import judging  # what it needs is no small part of the sidecar's memory

    _make_default_folder(settings.slo_history, "slo.db", "name a file with --slo-history")
    with judging(settings) as found:
        yield found


def _make_default_folder(file: Path, name: str, remedy: str) -> None:
    """The folder of a file that the user named is not made: it may be a volume not mounted."""
    if file != default_state(name):
        return
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot make {file.parent}: {error.strerror}; {remedy}") from error


@contextmanager
def _on_sigterm(stop: Callable[..., None]) -> Iterator[None]:
    """Whenever it comes, also before uvicorn listens to it.

    uvicorn stops on SIGTERM, puts this handler back and raises the signal again, to end as if it
    had not been handled; here it then does nothing more, and the process ends with 0.
    """
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
