"""Load on an OpenAI-compatible server, with a log of its own: the truth that tests compare with.

The log is the client's. A client that leaves may do so when the server has already sent its last
byte: the server then counts a success where the log says `gone`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass

import httpx

PATIENCE = 240  # seconds for one request; nothing here waits longer on purpose


@dataclass(frozen=True, slots=True)
class Call:
    """One request to make.

    leave_after_chunks: hang up once so many chunks came; leave_after_seconds: hang up then if no
    chunk came yet, be it queued or in prefill.
    """

    prompt: str = "the quick brown fox"
    max_tokens: int = 16
    leave_after_chunks: int | None = None
    leave_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What the client saw. status is 0 if it left before the response began.

    completion_tokens: the server's own `usage`, known only of a finished stream.
    """

    call: Call
    status: int = 0
    chunks: int = 0
    finished: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


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
        return [result for result in self.results if result.status >= 500]

    @property
    def gone(self) -> list[Result]:
        """Clients that hung up in the middle of an answer that had begun."""
        return [r for r in self.results if not r.finished and r.status == 200]

    @property
    def unheard(self) -> list[Result]:
        """Clients that hung up before any answer: the request may or may not have arrived."""
        return [result for result in self.results if not result.status]


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
    stream = _Stream(client, call)
    try:
        async with asyncio.timeout(call.leave_after_seconds) as patience:
            await stream.read(patience)
    except TimeoutError:
        pass  # the client left: leaving the stream closed the connection
    return stream.result()


class _Stream:
    def __init__(self, client: httpx.AsyncClient, call: Call) -> None:
        self._client = client
        self._call = call
        self._status = 0
        self._chunks = 0
        self._finished = False
        self._usage: dict[str, int] = {}

    def result(self) -> Result:
        return Result(
            self._call,
            self._status,
            self._chunks,
            self._finished,
            self._usage.get("prompt_tokens", 0),
            self._usage.get("completion_tokens", 0),
        )

    async def read(self, patience: asyncio.Timeout) -> None:
        body = {
            "model": "tiny",
            "prompt": self._call.prompt,
            "max_tokens": self._call.max_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        async with self._client.stream("POST", "/v1/completions", json=body) as response:
            self._status = response.status_code
            if response.is_error:
                return
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                if line == "data: [DONE]":
                    self._finished = True
                    return
                patience.reschedule(None)  # from the first chunk on, only chunks count
                if self._leaves_at(json.loads(line.removeprefix("data: "))):
                    return

    def _leaves_at(self, chunk: dict) -> bool:
        self._usage = chunk.get("usage") or self._usage
        self._chunks += bool(chunk["choices"])
        return self._chunks == self._call.leave_after_chunks
