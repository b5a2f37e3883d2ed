"""GET /v1/stream: the parts of the page that changed, as server-sent events.

    event: hello   {"edition": …}            once; another edition asks for a reload
    event: part    {"id", "version", "html"} all parts at first, then those that changed
    event: now     Unix seconds              every few seconds, whether or not anything changed

Nothing is queued for a listener: it gets what is so when it is ready, so a slow one only sees less.
One that reads nothing is ended by the kernel (process.py, TCP_USER_TIMEOUT).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence

from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from .document import Part

TICK = 1.0  # seconds
HEARTBEAT = 5.0
MOST_LISTENERS = 32


class Live:
    """Makes the parts for all listeners, at most once a tick, and only while there are any.

    make: the parts as they are now; it may block, and is called in a thread. stopping: whether the
    process is to end: then so does every stream.
    """

    def __init__(
        self,
        make: Callable[[], Sequence[Part]],
        edition: str,
        *,
        stopping: Callable[[], bool] = lambda: False,
        most: int = MOST_LISTENERS,
        tick: float = TICK,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.listeners = 0
        self.most = most
        self._make = make
        self._edition = edition
        self._stopping = stopping
        self._tick = tick
        self._clock = clock
        self._wall = wall
        self._lock = asyncio.Lock()
        self._made: tuple[float, Sequence[Part]] | None = None

    async def events(self) -> AsyncIterator[str]:
        """For one listener, until the process is to end."""
        yield _event("hello", {"edition": self._edition})
        sent: dict[str, str] = {}
        spoken = -HEARTBEAT
        while not self._stopping():
            changed = [p for p in await self._parts() if sent.get(p.id) != p.html]
            sent |= {part.id: part.html for part in changed}
            texts = [_part(part) for part in changed]
            if self._clock() - spoken >= HEARTBEAT or changed:
                spoken = self._clock()
                texts.append(_event("now", self._wall()))
            if texts:
                yield "".join(texts)
            await asyncio.sleep(self._tick)

    async def _parts(self) -> Sequence[Part]:
        async with self._lock:
            if self._made is None or self._clock() - self._made[0] >= self._tick / 2:
                parts = await asyncio.to_thread(self._make)
                self._made = self._clock(), parts
            return self._made[1]


class Stream(StreamingResponse):
    """The answer to one listener; 503 to one too many."""

    def __init__(self, live: Live) -> None:
        super().__init__(
            live.events(),
            media_type="text/event-stream",
            # A proxy that gathers an answer before it hands it on would show nothing.
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._live.listeners >= self._live.most:
            text = f"{self._live.most} listen already: close a page, or reload it by hand\n"
            full = PlainTextResponse(text, 503, {"Retry-After": "10"})
            await full(scope, receive, send)
            return
        self._live.listeners += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.listeners -= 1


def _part(part: Part) -> str:
    return _event("part", {"id": part.id, "version": part.version, "html": part.html})


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
