"""The routes of the page: /, /v1/stream, /runbooks/ and the files that the page loads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from .assets import assets

if TYPE_CHECKING:
    from ...slo.plan import Plan
    from .document import Simulation
    from .stream import Live
    from .watch import Watch


def page_router(
    watch: Watch,
    simulation: Simulation | None = None,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> APIRouter:
    """simulation: what is watched, if nothing real is. stopping: whether the process is to end, and
    open streams with it."""
    router = APIRouter(include_in_schema=False)
    loaded, plan = assets(), watch.judging.judge.plan if watch.judging else None
    live: list[Live] = []

    @router.api_route("/", methods=["GET", "HEAD"])
    async def index() -> HTMLResponse:
        from .document import page

        text = await asyncio.to_thread(lambda: page(watch.look(), loaded, simulation))
        return HTMLResponse(text, headers=_safe(buttons=simulation is not None))

    @router.get("/v1/stream")
    async def stream() -> Response:
        from .document import parts
        from .stream import Live, Stream

        if not live:
            made = Live(
                lambda: parts(watch.look(), simulation),
                loaded.edition,
                stopping=stopping,
                wall=watch.wall,
            )
            live.append(made)
        return Stream(live[0])

    @router.api_route("/page/{name}", methods=["GET", "HEAD"])
    async def asset(name: str, request: Request) -> Response:
        if name not in loaded.files:
            return PlainTextResponse("no such file\n", 404)
        body, media_type = loaded.files[name]
        tagged = {"ETag": f'"{loaded.edition}"', "X-Content-Type-Options": "nosniff"}
        if request.headers.get("if-none-match") == tagged["ETag"]:
            return Response(status_code=304, headers=tagged)
        return Response(body, media_type=media_type, headers=tagged | {"Cache-Control": "no-cache"})

    router.include_router(_runbooks(plan))
    return router


def _runbooks(plan: Plan | None) -> APIRouter:
    router = APIRouter()

    @router.get("/runbooks")
    async def without_slash() -> Response:
        return RedirectResponse("/runbooks/")

    @router.api_route("/runbooks/", methods=["GET", "HEAD"])
    @router.api_route("/runbooks/{alert}", methods=["GET", "HEAD"])
    async def runbooks(alert: str = "") -> Response:
        if plan is None:
            return PlainTextResponse("runbooks are made for an SLO file, and none is given\n", 404)
        from .runbooks import runbook_list, runbook_page

        text = runbook_page(plan, alert) if alert else runbook_list(plan)
        if text is None:
            return PlainTextResponse("no alert of that name may fire: see /runbooks/\n", 404)
        return HTMLResponse(text, headers=_safe())

    return router


def _safe(*, buttons: bool = False) -> dict[str, str]:
    """Nothing from another host, and no script or style that stands in the markup. buttons: that
    send forms to this sidecar."""
    forms = "'self'" if buttons else "'none'"
    return {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
        f" img-src 'self'; connect-src 'self'; base-uri 'none'; form-action {forms};"
        " frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",  # without, our own forms would come from nowhere
        "Cache-Control": "no-store",
    }
