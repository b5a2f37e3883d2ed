"""GET /v1/demo, and the routes that arm a fault and recover from it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from .buttons import Button, UnknownFaultError, button, buttons
from .pace import Pace
from .texts import BANNER

PATH = "/v1/demo"
RECOVER = f"{PATH}/recover"  # what a form can do: it knows no DELETE


def demo_router(pace: Pace) -> APIRouter:
    """A browser's form is answered by the page, everybody else by the document of GET /v1/demo."""
    router, world = APIRouter(tags=["demo"]), pace.world

    def answer(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("/", status_code=303)
        return JSONResponse(document(pace))

    @router.get(PATH)
    async def state() -> dict[str, Any]:
        """The faults that there are, and which is armed."""
        return document(pace)

    @router.post(PATH + "/faults/{name}")
    async def arm(name: str, request: Request) -> Response:
        """Arms a fault, in place of the one before."""
        try:
            world.arm(button(name))
        except UnknownFaultError as error:
            hint = f"GET {PATH} lists them"
            return JSONResponse({"error": str(error), "hint": hint}, 404)
        return answer(request)

    @router.delete(PATH + "/faults")
    @router.post(RECOVER)
    async def recover(request: Request) -> Response:
        """Ends the fault that is armed, if any."""
        world.recover()
        return answer(request)

    return router


def document(pace: Pace) -> dict[str, Any]:
    """Times are Unix seconds, durations seconds; null is never, or none."""
    armed = pace.world.armed
    return {
        "simulated": BANNER,
        "faults": [_fault(each) for each in buttons().values()],
        "armed": None
        if armed is None
        else {"name": armed.button.name, "since": armed.since, "until": armed.until},
        "lag_seconds": round(pace.lag, 3),
    }


def _fault(button: Button) -> dict[str, Any]:
    return {
        "id": "+".join(button.ids),
        "name": button.name,
        "title": button.title,
        "says": button.says,
        "pace": button.pace or None,
        "lasts_seconds": button.lasts,
        "alerts": button.expect,
    }
