"""GET /v1/slo, and /readyz for those who gate on an objective."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse

from .document import document
from .loop import Judging

_EVERY = "all"


def judge_router(judging: Judging, *, simulated: bool = False) -> APIRouter:
    """simulated: that nothing real is judged, as in the demo."""
    router = APIRouter()
    names = [objective.name for objective in judging.judge.plan.objectives]

    @router.head("/v1/slo", include_in_schema=False)
    @router.get("/v1/slo")
    async def slo() -> dict[str, Any]:
        """How each objective stands, and which alerts fire."""
        return {**document(judging), "simulated": simulated}

    @router.head("/readyz", include_in_schema=False)
    @router.get("/readyz")
    async def ready(slo: str | None = Query(default=None)) -> PlainTextResponse:
        """Of this process; with ?slo=NAME 503 while that objective pages, ?slo=all while any does.
        What cannot be judged is ready: nobody is kept out because nothing is known."""
        if slo is None:
            return PlainTextResponse("ok\n")
        if slo not in (*names, _EVERY):
            known = ", ".join((*names, _EVERY))
            return PlainTextResponse(f"no objective {slo}: there are {known}\n", status_code=404)
        latest = None if judging.doubt(judging.now) else judging.latest
        burning = [
            verdict.objective.name
            for verdict in (latest.verdicts if latest is not None else ())
            if verdict.incident and slo in (verdict.objective.name, _EVERY)
        ]
        if burning:
            told = ", ".join(dict.fromkeys(burning))
            return PlainTextResponse(f"not ready: {told} pages\n", status_code=503)
        return PlainTextResponse("ok\n")

    return router
