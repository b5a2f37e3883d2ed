"""Hangs up on clients that hold a connection without asking for anything."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

FIRST_REQUEST_SECONDS = 10.0


class ImpatientProtocol(H11Protocol):
    """uvicorn's own, which waits for ever for the first request of a connection.

    A few hundred silent connections would use up the descriptors, and with them /healthz.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hang_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._hang_up = self.loop.call_later(FIRST_REQUEST_SECONDS, self._close_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._hang_up is not None:
            self._hang_up.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        if self.cycle is None:  # no request head has come in whole
            self.transport.close()
