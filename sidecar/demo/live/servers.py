"""Engines as servers that come and go: while one is down its port refuses, and what was under way
on it breaks off."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

import uvicorn

from ...impatience import ImpatientProtocol
from ...log import fields
from .answers import engine_app
from .pace import TICK
from .texts import HEADER
from .world import World

HOST = "127.0.0.1"
PORTS = (18000, 18001)  # where they are free
_MOST_REQUESTS = 64  # at once, of strangers, at one engine
_AGAIN = 1.0  # seconds until a port that was taken meanwhile is tried again
_log = logging.getLogger(__name__)


def listeners(ports: Sequence[int] = PORTS) -> tuple[socket.socket, ...]:
    """One for each engine, on its own port where that is free."""
    return tuple(_listener_near(port) for port in ports)


def _listener_near(port: int) -> socket.socket:
    try:
        return _listener(port)
    except OSError:
        return _listener(0)


def _listener(port: int) -> socket.socket:
    # As in sidecar/process.py: asyncio sets TCP_NODELAY only on sockets that name their protocol.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


class EngineServer:
    """The server of one engine, at the port of `listener`, which it owns."""

    def __init__(self, world: World, index: int, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._world = world
        self._index = index
        self._listener: socket.socket | None = listener
        self._told = False  # that the port was taken meanwhile
        self._config = uvicorn.Config(
            engine_app(world, index),
            log_config=None,
            access_log=False,
            lifespan="off",
            http=ImpatientProtocol,
            ws="none",
            headers=[HEADER],
            limit_concurrency=_MOST_REQUESTS,
        )

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def keep(self, stopped: Callable[[], bool]) -> None:
        """Serves while the engine is up, until all is stopped."""
        try:
            while not stopped():
                if self._is_down() or not self._listens():
                    await asyncio.sleep(TICK if self._is_down() else _AGAIN)
                else:
                    await self._serve(stopped)
        finally:
            if self._listener is not None:
                self._listener.close()

    def _is_down(self) -> bool:
        return self._world.replica(self._index).engine.down

    def _listens(self) -> bool:
        if self._listener is None:
            try:
                self._listener = _listener(self.port)
            except OSError as error:
                self._say_once(str(error))
        return self._listener is not None

    def _say_once(self, error: str) -> None:
        if not self._told:
            _log.warning(
                "a simulated engine cannot come back", extra=fields(port=self.port, error=error)
            )
        self._told = True

    async def _serve(self, stopped: Callable[[], bool]) -> None:
        assert self._listener is not None  # noqa: S101
        self._told = False
        server = uvicorn.Server(self._config)
        serving = asyncio.create_task(server.serve([self._listener]))
        self._listener = None  # the server closes it
        while not (stopped() or self._is_down()):
            await asyncio.sleep(TICK)
        server.should_exit = server.force_exit = True
        for listener in server.servers:  # it would itself look only now and then
            listener.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await serving
