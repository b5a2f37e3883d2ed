"""The HTTP face of business events: POST /v1/events, /v1/events:batch, GET /v1/events/schema.

Every answer is JSON. A refusal is {"error": what is wrong, "hint": what to do}.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from .business import Business, BusyError, Result
from .journal import JournalWriteError
from .model import MAX_BATCH, Event, EventError, json_schema, parse

_BODIES_AT_ONCE = 16  # of the greatest size, over all connections
Handler = Callable[[Request], Awaitable[Response]]


class _RefusalError(Exception):
    """Ends a request with a status other than success."""

    def __init__(
        self, status: int, error: str, hint: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(error)
        self.response = JSONResponse({"error": error, "hint": hint}, status, headers)


def events_router(business: Business, token: str | None, max_body: int) -> APIRouter:
    """The routes, to be included in an app. token: asked for as `Authorization: Bearer`;
    max_body: bytes."""
    router = APIRouter(tags=["business events"])
    bodies = _Bodies(max_body, _BODIES_AT_ONCE * max_body)
    schema = json_schema()

    def guarded(handler: Handler) -> Handler:
        @wraps(handler)
        async def answer(request: Request) -> Response:
            try:
                _authorize(request, token)
                return await handler(request)
            except _RefusalError as refusal:
                return refusal.response
            except ClientDisconnect:
                return Response(status_code=400)  # nobody is left to read it

        return answer

    @router.post("/v1/events")
    @guarded
    async def take_one(request: Request) -> Response:
        try:
            event = parse(_decoded(await bodies.read(request)))
        except EventError as error:
            await _recorded(business, [], invalid=1)
            raise _RefusalError(422, error.error, error.hint) from None
        (result,) = await _recorded(business, [event])
        return JSONResponse({"status": result})

    @router.post("/v1/events:batch")
    @guarded
    async def take_batch(request: Request) -> Response:
        documents = _batch(_decoded(await bodies.read(request)))
        parsed = [_parsed(document) for document in documents]
        events = [item for item in parsed if not isinstance(item, EventError)]
        results = iter(await _recorded(business, events, invalid=len(parsed) - len(events)))
        items = [
            {"index": index, "status": Result.INVALID, "error": item.error, "hint": item.hint}
            if isinstance(item, EventError)
            else {"index": index, "status": next(results)}
            for index, item in enumerate(parsed)
        ]
        counts = Counter(item["status"] for item in items)
        summary = {result: counts[result] for result in Result}
        status = 207 if counts[Result.INVALID] else 200
        return JSONResponse({**summary, "items": items}, status)

    @router.get("/v1/events/schema")
    async def get_schema() -> Response:
        return JSONResponse(schema, media_type="application/schema+json")

    return router


def _authorize(request: Request, token: str | None) -> None:
    if token is None:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    # Compared as bytes: compare_digest refuses text beyond ASCII. Headers arrive as Latin-1.
    match = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
    if scheme.lower() != "bearer" or not match:
        raise _RefusalError(
            401,
            "wrong token" if given else "a token is needed",
            "send the header `Authorization: Bearer <token of the sidecar>`",
            {"WWW-Authenticate": 'Bearer realm="inferslo events"'},
        )


class _Bodies:
    """Reads bodies of at most `each` bytes, and of at most `together` while they come in."""

    def __init__(self, each: int, together: int) -> None:
        self._each = each
        self._left = together

    async def read(self, request: Request) -> bytes:
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise _RefusalError(
                415, f"content encoding {encoding[:64]!r}", "send the body uncompressed"
            )
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                self._left -= len(chunk)
                self._check(len(body))
            return bytes(body)
        finally:
            self._left += len(body)

    def _check(self, size: int) -> None:
        if size > self._each:
            raise _RefusalError(
                413, f"the body is over {self._each} bytes", "send fewer events in one request"
            )
        if self._left < 0:
            raise _RefusalError(
                429, "too many bodies are coming in", "send again later", {"Retry-After": "1"}
            )


def _decoded(body: bytes) -> object:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise _RefusalError(400, f"the body is not JSON: {error}", "send one JSON object") from None


def _batch(document: object) -> Sequence[object]:
    if not isinstance(document, dict) or list(document) != ["events"]:
        raise _RefusalError(422, "a batch has one key, `events`", 'send {"events": [ … ]}')
    events = document["events"]
    if not isinstance(events, list):
        raise _RefusalError(422, "`events` is not a list", 'send {"events": [ … ]}')
    if len(events) > MAX_BATCH:
        raise _RefusalError(413, f"{len(events)} events in one batch", f"send at most {MAX_BATCH}")
    return events


def _parsed(document: object) -> Event | EventError:
    try:
        return parse(document)
    except EventError as error:
        return error


async def _recorded(
    business: Business, events: Sequence[Event], invalid: int = 0
) -> Sequence[Result]:
    try:
        return await asyncio.wrap_future(business.record(events, invalid))
    except BusyError as error:
        raise _RefusalError(429, str(error), "send again later", {"Retry-After": "1"}) from None
    except JournalWriteError as error:
        raise _RefusalError(
            503, str(error), "nothing was counted: send again later", {"Retry-After": "5"}
        ) from None
