"""A simulated engine over HTTP, shaped as vLLM's server: its pages, and OpenAI's completions.

A request enters the simulated queue among all others, and its tokens come at the simulated pace.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.requests import ClientDisconnect

from ....exporters.names import Outcome
from .. import request as simulated
from ..sidecars import VERSION
from ..traffic import LONG
from .pace import TICK
from .texts import ANSWER
from .world import MODEL, World

_MOST_BYTES = 1 << 20  # of a body
_TOKENS = 128  # of an answer whose request sets no limit
_PER_TOKEN = 4  # characters of a prompt
_LOOK = 0.1  # seconds between two looks whether an answer is whole
_CLASSES = ("S", "default")
_WORDS = ANSWER.split()
_STATUS = {Outcome.REJECTED: 503, Outcome.ERROR: 500, Outcome.TIMEOUT: 504}


class _WrongError(Exception):
    """A request that the engine refuses, with an HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.response = JSONResponse(
            {"error": {"message": message, "type": "invalid_request_error", "code": status},
             "simulated": True},
            status,
        )  # fmt: skip


def engine_app(world: World, index: int) -> FastAPI:
    """The server of one engine of the world."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    ids = itertools.count(1)

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        form = _Form(f"cmpl-simulated-{index}-{next(ids)}", int(world.now), chat=False)
        return await _complete(request, world, index, form)

    @app.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        form = _Form(f"chatcmpl-simulated-{index}-{next(ids)}", int(world.now), chat=True)
        return await _complete(request, world, index, form)

    app.include_router(_pages(world, index))
    return app


def _pages(world: World, index: int) -> APIRouter:
    router = APIRouter()

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(world.page(index), media_type="text/plain; version=0.0.4")

    @router.get("/version")
    async def version() -> dict[str, str]:
        return {"version": VERSION}

    @router.get("/health")
    async def health() -> Response:
        return Response()

    @router.get("/v1/models")
    async def models() -> dict[str, Any]:
        config = world.replica(index).engine.config
        model = {"id": MODEL, "object": "model", "owned_by": "inferslo (simulated)"}
        data = [{**model, "max_model_len": config.max_model_len}]
        return {"object": "list", "data": data, "simulated": True}

    return router


async def _complete(request: Request, world: World, index: int, form: _Form) -> Response:
    try:
        asked = _asked(await _body(request), form.chat)
        flight = Flight(world, index, asked, request.headers.get("x-sla-class", "default"))
    except _WrongError as wrong:
        return wrong.response
    except ClientDisconnect:
        return Response(status_code=400)  # nobody is left to read it
    if asked.stream:
        return StreamingResponse(form.events(flight), media_type="text/event-stream")
    return await _whole(request, flight, form)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a body asks for. prompt, limit: tokens."""

    prompt: int
    limit: int
    stream: bool


def _asked(body: object, chat: bool) -> Asked:
    if not isinstance(body, dict):
        raise _WrongError(400, "send one JSON object")
    if body.get("model", MODEL) != MODEL:
        raise _WrongError(404, f"there is one model here, {MODEL}, and it is simulated")
    key = "messages" if chat else "prompt"
    if not (prompt := body.get(key)):
        raise _WrongError(400, f"{key} is missing")
    limit = body.get("max_tokens", body.get("max_completion_tokens", _TOKENS))
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise _WrongError(400, f"max_tokens is a number from 1 on, not {json.dumps(limit)}")
    text = prompt if isinstance(prompt, str) else json.dumps(prompt)
    return Asked(max(1, len(text) // _PER_TOKEN), limit, body.get("stream") is True)


async def _body(request: Request) -> object:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise _WrongError(413, f"the body is over {_MOST_BYTES} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _WrongError(400, "the body is not JSON") from None


class Flight:
    """A request of a stranger inside the simulated engine."""

    def __init__(self, world: World, index: int, asked: Asked, sla_class: str) -> None:
        self._world = world
        self._index = index
        config = world.replica(index).engine.config
        if asked.prompt + asked.limit > config.max_model_len:
            raise _WrongError(
                400, f"prompt and answer are over {config.max_model_len} tokens together"
            )
        length = f"gt_{LONG}" if asked.prompt > LONG else f"le_{LONG}"
        named = sla_class if sla_class in _CLASSES else "default"
        with world.locked() as fleet:
            self.request = simulated.Request(
                asked.prompt, asked.limit, fleet.now, named, length, max_tokens=asked.limit
            )
            fleet.replicas[index].engine.submit(self.request)

    @property
    def outcome(self) -> Outcome | None:
        return self.request.outcome

    @property
    def tokens(self) -> int:
        """That an honest client would have by now."""
        with self._world.locked() as fleet:
            if self.request.empty:
                return 0
            return fleet.replicas[self._index].engine.generated(self.request)

    @property
    def broken(self) -> bool:
        """Its engine is gone: the connection breaks off, and nothing more is said."""
        return self.outcome is Outcome.ERROR and self._world.replica(self._index).engine.down

    def abandon(self) -> None:
        """The client is gone. What has ended stays as it ended."""
        with self._world.locked() as fleet:
            fleet.replicas[self._index].engine.abandon(self.request)

    async def counts(self) -> AsyncGenerator[tuple[int, int], None]:
        """Tokens before and now, whenever there are more."""
        before = 0
        try:
            while True:
                ended = self.outcome is not None
                if (now := self.tokens) > before:
                    yield before, now
                    before = now
                if ended:
                    return
                await asyncio.sleep(TICK)
        finally:
            self.abandon()


class _Form:
    """OpenAI's documents, of chat or of plain completions."""

    def __init__(self, id: str, created: int, *, chat: bool) -> None:
        self._id = id
        self._created = created
        self.chat = chat

    async def events(self, flight: Flight) -> AsyncIterator[str]:
        """The stream, as server-sent events."""
        async with aclosing(flight.counts()) as counts:  # a client that is gone ends it, too
            async for before, now in counts:
                yield _event(self._document(_text(before, now), None, chunk=True))
        while flight.broken:
            await asyncio.sleep(TICK)
        if flight.outcome in _STATUS:
            yield _event({"error": _failure(flight), "simulated": True})
        else:
            yield _event(self._document("", _reason(flight), chunk=True))
        yield "data: [DONE]\n\n"

    def whole(self, flight: Flight) -> dict[str, Any]:
        prompt, tokens = flight.request.prompt, flight.tokens
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens,
                 "total_tokens": prompt + tokens}  # fmt: skip
        return {**self._document(_text(0, tokens), _reason(flight), chunk=False), "usage": usage}

    def _document(self, text: str, reason: str | None, *, chunk: bool) -> dict[str, Any]:
        kind = "text_completion"
        said: dict[str, Any] = {"text": text}
        if self.chat:
            kind = "chat.completion.chunk" if chunk else "chat.completion"
            message = {"role": "assistant", "content": text}
            said = {"delta": message} if chunk else {"message": message}
        choice = {"index": 0, **said, "finish_reason": reason}
        return {"id": self._id, "object": kind, "created": self._created, "model": MODEL,
                "simulated": True, "choices": [choice]}  # fmt: skip


async def _whole(request: Request, flight: Flight, form: _Form) -> Response:
    while flight.outcome is None or flight.broken:
        if await request.is_disconnected():
            flight.abandon()
            return Response(status_code=400)  # nobody is left to read it
        await asyncio.sleep(_LOOK)
    if flight.outcome in _STATUS:
        error = {"error": _failure(flight), "simulated": True}
        return JSONResponse(error, _STATUS[flight.outcome])
    return JSONResponse(form.whole(flight))


def _reason(flight: Flight) -> str:
    return "stop" if flight.request.empty else "length"


def _failure(flight: Flight) -> dict[str, Any]:
    assert flight.outcome is not None  # noqa: S101
    return {"message": f"simulated failure: {flight.outcome}", "type": "simulated"}


def _text(before: int, now: int) -> str:
    """Tokens of an answer, by number; each is a word."""
    return "".join(f"{_WORDS[number % len(_WORDS)]} " for number in range(before, now))


def _event(document: dict[str, Any]) -> str:
    return f"data: {json.dumps(document)}\n\n"
