"""Refuses what another site's page makes a browser send.

A browser sends a form, or a text, to whatever address a page names, this machine's own ones too;
the page cannot read the answer, but what was sent has been done. Browsers say where it comes from;
programs say nothing of it, and are let through.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN = frozenset({"same-origin", "none"})


class SameSite:
    """Middleware. on_loopback: only this machine reaches us, under no name but its own: another
    name is a site's that leads here (DNS rebinding)."""

    def __init__(self, app: ASGIApp, *, on_loopback: bool) -> None:
        self._app = app
        self._on_loopback = on_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _READS:
            headers = Headers(scope=scope)
            if _is_foreign(headers) or (self._on_loopback and not _is_local(headers)):
                hint = "send it from a program, or from this sidecar's own page"
                refusal = {"error": "another site's page may not do this", "hint": hint}
                await JSONResponse(refusal, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_foreign(headers: Mapping[str, str]) -> bool:
    if (site := headers.get("sec-fetch-site")) is not None:
        return site not in _OWN
    origin = headers.get("origin")  # of a browser that says no more, as over plain HTTP
    return origin is not None and urlsplit(origin).netloc != headers.get("host", "")


def _is_local(headers: Mapping[str, str]) -> bool:
    name = urlsplit(f"//{headers.get('host', '')}").hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
