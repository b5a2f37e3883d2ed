"""A client of Alertmanager's API v2, for one Alertmanager or the peers of a cluster.

What is asked goes to the first peer that answers. Alerts go to every peer, since each notifies by
itself and they only tell each other what has been sent; one that was told nothing would be of no
use when the others fail. Every call has one deadline over all it does, attempts and
answers included; only the look-up of a host's name can outlast it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from .api import Alert, Group, Matcher, Report, Silence, Status
from .errors import AddressError, AlertmanagerError

MAX_BYTES = 32 << 20
_ATTEMPTS = 3
_PAUSE = 0.5  # seconds before the second attempt, twice that before the third
_SHOWN = 300  # characters of an answer that an error repeats
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delivery:
    """taken: peers that took the alerts. failed: those that did not, and why."""

    taken: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


class _UnreachableError(AlertmanagerError):
    """This peer did not answer; another may."""


class _SilentError(_UnreachableError):
    """It may have done what it was asked, and did not say so."""


class Alertmanager:
    """urls: base URLs of the peers, path prefix included. token: gives the bearer token, asked for
    at each request. ca_file: PEM file of the servers' CA. deadline: seconds for a whole call.

    Raises AddressError at once, AlertmanagerError when called. Not for use inside an event loop:
    call it in a thread there. A proxy named in the environment is not used.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        token: Callable[[], str] | None = None,
        ca_file: Path | None = None,
        deadline: float = 10.0,
    ) -> None:
        self._urls = tuple(dict.fromkeys(_base(url) for url in urls))
        if not self._urls:
            raise AddressError("no Alertmanager is named: give at least one URL")
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._deadline = deadline

    def alerts(self, matchers: Iterable[Matcher] = ()) -> list[Alert]:
        """All that it holds, silenced and inhibited ones too, of which the matchers hold."""
        answer = self._ask("GET", "alerts", params=_filter(matchers))
        return _read(answer, _each(Alert.read))

    def groups(self, matchers: Iterable[Matcher] = ()) -> list[Group]:
        answer = self._ask("GET", "alerts/groups", params=_filter(matchers))
        return _read(answer, _each(Group.read))

    def silences(self, matchers: Iterable[Matcher] = ()) -> list[Silence]:
        """Expired ones too, which it keeps for some days."""
        answer = self._ask("GET", "silences", params=_filter(matchers))
        return _read(answer, _each(Silence.read))

    def silence(
        self,
        matchers: Sequence[Matcher],
        *,
        start: datetime,
        end: datetime,
        created_by: str,
        comment: str,
    ) -> str:
        """Silences alerts of which every matcher holds; returns the id of the silence."""
        body = {
            "matchers": [matcher.written() for matcher in matchers],
            "startsAt": start.isoformat(),
            "endsAt": end.isoformat(),
            "createdBy": created_by,
            "comment": comment,
        }
        # A second one, made because the first was not heard of, would go on when that is ended.
        answer = self._ask("POST", "silences", json=body, twice=False)
        return _read(answer, lambda data: str(data["silenceID"]))

    def expire(self, silence_id: str) -> None:
        """Ends a silence now."""
        self._ask("DELETE", f"silence/{quote(silence_id, safe='')}")

    def status(self) -> Status:
        return _read(self._ask("GET", "status"), Status.read)

    def receivers(self) -> list[str]:
        answer = self._ask("GET", "receivers")
        return _read(answer, _each(lambda receiver: str(receiver["name"])))

    def post(self, reports: Iterable[Report]) -> Delivery:
        """Tells every peer; what it fails to answer is tried again. Raises if none took it."""
        body = [report.written() for report in reports]
        outcomes = asyncio.run(self._with_client(lambda client: self._post_to_all(client, body)))
        failed = tuple(
            (url, fault) for url, fault in zip(self._urls, outcomes, strict=True) if fault
        )
        if len(failed) == len(self._urls):
            raise AlertmanagerError("; ".join(fault for _, fault in failed))
        taken = tuple(url for url in self._urls if url not in dict(failed))
        return Delivery(taken, failed)

    async def _post_to_all(self, client: httpx.AsyncClient, body: object) -> list[str]:
        return await asyncio.gather(*(self._post_to(client, url, body) for url in self._urls))

    async def _post_to(self, client: httpx.AsyncClient, url: str, body: object) -> str:
        """Why the peer did not take it; "" if it did."""
        fault = ""
        try:
            async with asyncio.timeout(self._deadline):
                for attempt in range(_ATTEMPTS):
                    await asyncio.sleep(attempt * _PAUSE)
                    try:
                        await _exchange(client, url, "POST", "alerts", json=body)
                        return ""
                    except _UnreachableError as error:
                        fault = str(error)
        except TimeoutError:
            return fault or _too_slow(url, self._deadline)
        except AlertmanagerError as error:
            return str(error)
        return fault

    def _ask(self, method: str, path: str, *, twice: bool = True, **parts: Any) -> _Answer:
        """The answer of the first peer that gives one. twice: whether a second peer may be asked
        when the first may already have done it."""

        async def ask(client: httpx.AsyncClient) -> _Answer:
            faults: list[str] = []
            for url in self._urls:
                share = self._deadline / len(self._urls)
                try:
                    async with asyncio.timeout(share):
                        return await _exchange(client, url, method, path, **parts)
                except TimeoutError:
                    faults.append(_too_slow(url, share))
                    if not twice:
                        break
                except _UnreachableError as error:
                    faults.append(str(error))
                    if not twice and isinstance(error, _SilentError):
                        break
            raise AlertmanagerError("; ".join(faults))

        return asyncio.run(self._with_client(ask))

    async def _with_client(self, work: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
        headers = {"Authorization": f"Bearer {self._token()}"} if self._token else {}
        async with httpx.AsyncClient(
            verify=self._tls, headers=headers, timeout=self._deadline, trust_env=False
        ) as client:
            return await work(client)


@dataclass(frozen=True, slots=True)
class _Answer:
    url: str
    body: bytes


async def _exchange(
    client: httpx.AsyncClient, url: str, method: str, path: str, **parts: Any
) -> _Answer:
    try:
        async with client.stream(method, f"{url}/api/v2/{path}", **parts) as response:
            body = await _bounded(url, response)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise _UnreachableError(_unreachable(url, error)) from None
    except httpx.HTTPError as error:
        raise _SilentError(f"Alertmanager at {url} broke off: {_told(error)}") from None
    if response.is_success:
        return _Answer(url, body)
    if path.startswith("silence/") and "not found" in _text(body):  # 0.25 calls it a 500
        raise AlertmanagerError(f"Alertmanager at {url} knows no silence {path.partition('/')[2]}")
    if response.is_server_error:
        raise _SilentError(f"Alertmanager at {url} fails ({response.status_code}): {_text(body)}")
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


def _read(answer: _Answer, read: Callable[[Any], T]) -> T:
    try:
        return read(json.loads(answer.body))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise AlertmanagerError(
            f"{answer.url} does not answer like Alertmanager's API v2: is it one, and is the"
            f" path right? It says: {_text(answer.body)}"
        ) from None


def _each(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    def read_all(data: Any) -> list[T]:
        if not isinstance(data, list):
            raise TypeError
        return [read(each) for each in data]

    return read_all


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
    try:
        data = json.loads(text)
        text = data if isinstance(data, str) else data["message"]
    except (ValueError, TypeError, KeyError):
        pass
    return " ".join(str(text).split())[:_SHOWN] or "nothing"


def _unreachable(url: str, error: httpx.HTTPError) -> str:
    return f"Alertmanager at {url} cannot be reached ({_told(error)}): does it run there?"


def _too_slow(url: str, seconds: float) -> str:
    return f"Alertmanager at {url} did not answer within {seconds:g} s"


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHOWN] or type(error).__name__


def _filter(matchers: Iterable[Matcher]) -> Mapping[str, list[str]]:
    return {"filter": [str(matcher) for matcher in matchers]}


def _base(url: str) -> str:
    """The URL without its last slash. What may be a secret is not repeated in an error."""
    if "@" in url:
        raise AddressError("the URL of an Alertmanager holds a user or password: use a token file")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise AddressError(f'"{url}" is not the URL of an Alertmanager: write http://HOST:9093')
    return url.rstrip("/").removesuffix("/api/v2").rstrip("/")
