"""One question to one Alertmanager, within a deadline and a size, and what its answers mean."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from .errors import AddressError, AlertmanagerError

MAX_BYTES = 32 << 20
_SHOWN = 300  # characters of an answer that an error repeats
T = TypeVar("T")


class UnreachableError(AlertmanagerError):
    """This peer did not answer; another may."""


class SilentError(UnreachableError):
    """It may have done what it was asked, and did not say so."""


@dataclass(frozen=True, slots=True)
class Answer:
    url: str
    body: bytes


async def ask(
    seconds: float, client: httpx.AsyncClient, url: str, method: str, path: str, **parts: Any
) -> Answer:
    """The answer of one that did as it was asked, in so many seconds. url: base URL; path: below
    /api/v2; parts: as httpx takes them. Raises AlertmanagerError."""
    try:
        async with asyncio.timeout(seconds):
            return await _exchange(client, url, method, path, **parts)
    except TimeoutError:
        fault = f"Alertmanager at {url} did not answer within {seconds:.3g} s"
        raise SilentError(fault) from None


async def _exchange(
    client: httpx.AsyncClient, url: str, method: str, path: str, **parts: Any
) -> Answer:
    try:
        async with client.stream(method, f"{url}/api/v2/{path}", **parts) as response:
            body = await _bounded(url, response)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise UnreachableError(_unreachable(url, error)) from None
    except httpx.HTTPError as error:
        raise SilentError(f"Alertmanager at {url} broke off: {_told(error)}") from None
    if response.is_success:
        return Answer(url, body)
    if path.startswith("silence/") and "not found" in _text(body):  # 0.25 calls it a 500
        raise AlertmanagerError(
            f"Alertmanager at {url} knows no silence {path.partition('/')[2]}: `inferslo silence"
            " list --all` tells those that it knows"
        )
    if response.is_server_error:
        raise SilentError(f"Alertmanager at {url} fails ({response.status_code}): {_text(body)}")
    raise AlertmanagerError(_refusal(url, path, response.status_code, body))


async def _bounded(url: str, response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise AlertmanagerError(
                f"Alertmanager at {url} answers more than {MAX_BYTES >> 20} MiB: ask for less,"
                " with matchers"
            )
    return bytes(body)


def parsed(answer: Answer, make: Callable[[Any], T]) -> T:
    """What `make` makes of the JSON. Raises AlertmanagerError if it is not what `make` takes."""
    try:
        return make(json.loads(answer.body))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise _is_none(answer) from None


def expect_nothing(answer: Answer) -> None:
    """Raises AlertmanagerError: a page for logging in is a success too, and took no alert."""
    if answer.body.strip():
        raise _is_none(answer)


def _is_none(answer: Answer) -> AlertmanagerError:
    return AlertmanagerError(
        f"{answer.url} does not answer like Alertmanager's API v2: is it one, and is the path"
        f" right? It says: {_text(answer.body)}"
    )


def list_of(make: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    def make_all(data: Any) -> list[T]:
        if not isinstance(data, list):
            raise TypeError
        return [make(each) for each in data]

    return make_all


def _refusal(url: str, path: str, status: int, body: bytes) -> str:
    if status in (401, 403):
        return f"Alertmanager at {url} refuses ({status}): a token that it knows is needed"
    if status == 404:
        return (
            f"{url} has no /api/v2/{path}: is it an Alertmanager, and is a path prefix missing"
            " from the URL?"
        )
    if 300 <= status < 400:
        return f"{url} sends elsewhere ({status}): give the URL that it leads to"
    return f"Alertmanager at {url} refuses ({status}): {_text(body)}"


def _text(body: bytes) -> str:
    """What an answer says, in one short line."""
    text = body.decode(errors="replace")
    with contextlib.suppress(
        ValueError, TypeError, KeyError, RecursionError
    ):  # it says so in plain text
        data = json.loads(text)
        text = data if isinstance(data, str) else data["message"]
    return " ".join(str(text).split())[:_SHOWN] or "nothing"


def _unreachable(url: str, error: httpx.HTTPError) -> str:
    return f"Alertmanager at {url} cannot be reached ({_told(error)}): does it run there?"


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHOWN] or type(error).__name__


def base_url(url: str) -> str:
    """The URL without its last slash. What may be a secret is not repeated in an error."""
    if "@" in url or "?" in url:
        raise AddressError(
            "the URL of an Alertmanager holds a user, a password or a query: write"
            " http://HOST:9093, and put a token into a file"
        )
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.fragment or not url.isprintable() or " " in url:
        raise AddressError(f'"{url}" is not the URL of an Alertmanager: write http://HOST:9093')
    return url.rstrip("/").removesuffix("/api/v2").rstrip("/")
