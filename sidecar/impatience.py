"""Keeps clients that hold connections without a whole request from starving the others."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
MAX_CONNECTIONS = 256  # well under the 1,024 descriptors that many containers have


class ImpatientProtocol(H11Protocol):
    """uvicorn's own, which waits for ever for the first request, and for the rest of any request.

    Here a request, head and body, must be whole so many seconds after the connection was made or
    the answer before it was sent. One connection too many costs one that waits for its request.
    """

    connections: set[ImpatientProtocol]  # type: ignore[assignment]  # of this server, all ours

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.DONE:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is not h11.DONE:  # else the next one was in the pipe
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self._stop_waiting()
        self.patience = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None

    def _make_room(self) -> None:
        waiting = (
            other
            for other in self.connections
            if other is not self and other.patience and not other.transport.is_closing()
        )
        next(waiting, self).transport.close()
