"""The HTTP face of the sidecar. Nothing here waits for a source: it serves what the board has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import PlainTextResponse

from ..exporters.reading import Gap
from .board import Board
from .events.business import Business
from .publisher import Publisher
from .samesite import SameSite
from .status import status

if TYPE_CHECKING:
    from .judge.loop import Judging


def create_app(
    board: Board,
    publisher: Publisher,
    *,
    business: Business | None = None,
    events: APIRouter | None = None,
    not_watched: Sequence[Gap] = (),
    judging: Judging | None = None,
    page: APIRouter | None = None,
    demo: APIRouter | None = None,
    on_loopback: bool = False,
) -> FastAPI:
    """The application. events: the routes that take what `business` counts. judging: of an SLO
    file, if there is one. page: the routes of what people look at. demo: those of the faults, where
    all that is watched is simulated. on_loopback: only this machine reaches it.

    It is made when all is set up, so that it answers at all is what /readyz says. A disk that is
    full does not make the pod unready: the engine beside us can serve without our journal.
    """
    # The interactive docs fetch scripts from elsewhere; the schema itself stays at /openapi.json.
    app = FastAPI(title="inferslo sidecar", docs_url=None, redoc_url=None, redirect_slashes=False)

    app.add_middleware(SameSite, on_loopback=on_loopback)

    async def metrics(request: Request) -> Response:
        encodings = request.headers.get("accept-encoding", "").replace(" ", "")
        compress = "gzip" in encodings and "gzip;q=0" not in encodings
        page, content_type = publisher.page(request.headers.get("accept", ""), compress=compress)
        headers = {"Vary": "Accept, Accept-Encoding"}
        if compress:
            headers["Content-Encoding"] = "gzip"
        return Response(page, media_type=content_type, headers=headers)

    async def healthy() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    async def sources() -> dict[str, Any]:
        return status(board.states(), not_watched, business)

    for path, endpoint in (
        ("/metrics", metrics),
        ("/healthz", healthy),
        ("/-/healthy", healthy),
        *((("/readyz", healthy),) if judging is None else ()),
        ("/-/ready", healthy),
        ("/v1/status", sources),
    ):
        app.add_api_route(path, endpoint, methods=["GET", "HEAD"], include_in_schema=False)
    if events is not None:
        app.include_router(events)
    if page is not None:
        app.include_router(page)
    if judging is not None:
        from .judge.api import judge_router

        app.include_router(judge_router(judging, simulated=demo is not None))
    if demo is not None:
        app.include_router(demo)
    return app
