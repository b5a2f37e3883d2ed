"""Load on an OpenAI-compatible server, with a log of its own: the truth that tests compare with.

The log is the client's. A client that leaves may do so when the server has already sent its last
byte: the server then counts a success where the log says `gone`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from threading import Event

import httpx
from e2e.vllm import MODEL_NAME

PATIENCE = 240  # seconds for one request; nothing here waits longer on purpose


@dataclass(frozen=True, slots=True)
class Call:
    """One request to make.

    leave_after_chunks: hang up once so many chunks came; leave_after_seconds: hang up so long after
    the response began if no chunk came, for want of a place in the batch; leave_when: hang up with
    the next chunk once it is set.
    """

    prompt: str = "the quick brown fox"
    max_tokens: int = 16
    leave_after_chunks: int | None = None
    leave_after_seconds: float | None = None
    leave_when: Event | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What the client saw.

    status: 0 if there was no answer; failed: 5xx, or the connection or the stream broke off;
    completion_tokens: the server's own `usage`, known only of a finished stream.
    """

    call: Call
    status: int
    chunks: int
    finished: bool
    failed: bool
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Log:
    results: tuple[Result, ...]

    @property
    def finished(self) -> list[Result]:
        return [result for result in self.results if result.finished]

    @property
    def invalid(self) -> list[Result]:
        return [result for result in self.results if 400 <= result.status < 500]

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results if result.failed]

    @property
    def gone(self) -> list[Result]:
        """Clients that hung up in the middle of an answer that had begun."""
        return [r for r in self.results if r.status == 200 and not (r.finished or r.failed)]


def run(url: str, calls: Iterable[Call], at_once: int = 8) -> Log:
    """Makes all calls, at most `at_once` at a time, and waits for the last."""
    return asyncio.run(_run(url, list(calls), at_once))


async def _run(url: str, calls: list[Call], at_once: int) -> Log:
    gate = asyncio.Semaphore(at_once)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as client:

        async def gated(call: Call) -> Result:
            async with gate:
                return await _make(client, call)

        return Log(tuple(await asyncio.gather(*map(gated, calls))))


async def _make(client: httpx.AsyncClient, call: Call) -> Result:
    body = {
        "model": MODEL_NAME,
        "prompt": call.prompt,
        "max_tokens": call.max_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    reader = _Reader(call)
    with contextlib.suppress(httpx.TransportError):
        async with client.stream("POST", "/v1/completions", json=body) as response:
            await reader.read(response)
        return reader.result()
    return dataclasses.replace(reader.result(), failed=True)


class _Reader:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._status = 0
        self._chunks = 0
        self._finished = False
        self._failed = False
        self._tokens = 0

    def result(self) -> Result:
        return Result(
            self._call, self._status, self._chunks, self._finished, self._failed, self._tokens
        )

    async def read(self, response: httpx.Response) -> None:
        """Until the end, or until the client leaves: the caller then closes the connection."""
        self._status = response.status_code
        self._failed = response.is_server_error
        if response.status_code != 200:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._call.leave_after_seconds) as patience:
                async for line in _lines(response):
                    if not line:
                        continue
                    patience.reschedule(None)
                    self._take(line.removeprefix(b"data: "))
                    if self._leaves():
                        return

    def _leaves(self) -> bool:
        told = self._call.leave_when is not None and self._call.leave_when.is_set()
        return told or self._chunks == self._call.leave_after_chunks

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._finished = not self._failed
            return
        chunk = json.loads(data)
        self._failed |= "error" in chunk  # with the response begun, it is too late for a status
        self._chunks += bool(chunk.get("choices"))
        if usage := chunk.get("usage"):
            self._tokens = usage["completion_tokens"]


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """httpx's own lines end at U+2028 and its like too, which a model may well say."""
    rest = b""
    async for data in response.aiter_bytes():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line
