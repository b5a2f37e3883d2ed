"""A client of Alertmanager's API v2, for one Alertmanager or the peers of a cluster.

What is asked goes to the first peer that answers. Alerts go to every peer, since each notifies by
itself and they only tell each other what has been sent; one that was told nothing would be of no
use when the others fail. Every call has one deadline over all it does, attempts and answers
included; only the look-up of a host's name can outlast it.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from .api import Alert, Group, Matcher, Report, Silence, Status
from .errors import AddressError, AlertmanagerError
from .exchange import (
    Answer,
    SilentError,
    UnreachableError,
    ask,
    base_url,
    expect_nothing,
    list_of,
    parsed,
)

_ATTEMPTS = 3
_PAUSE = 0.5  # seconds before the second attempt, twice that before the third
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delivery:
    """taken: peers that took the alerts. failed: those that did not, and why."""

    taken: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


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
        self._urls = tuple(dict.fromkeys(base_url(url) for url in urls))
        if not self._urls:
            raise AddressError("no Alertmanager is named: give at least one URL")
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._deadline = deadline

    def alerts(self, matchers: Iterable[Matcher] = ()) -> list[Alert]:
        """All that it holds, silenced and inhibited ones too, of which the matchers hold."""
        answer = self._ask("GET", "alerts", params=_filter(matchers))
        return parsed(answer, list_of(Alert.read))

    def groups(self, matchers: Iterable[Matcher] = ()) -> list[Group]:
        answer = self._ask("GET", "alerts/groups", params=_filter(matchers))
        return parsed(answer, list_of(Group.read))

    def silences(self, matchers: Iterable[Matcher] = ()) -> list[Silence]:
        """Expired ones too, which it keeps for some days."""
        answer = self._ask("GET", "silences", params=_filter(matchers))
        return parsed(answer, list_of(Silence.read))

    def silence(
        self,
        matchers: Sequence[Matcher],
        *,
        start: datetime,
        end: datetime,
        created_by: str,
        comment: str,
    ) -> str:
        """Silences alerts of which every matcher holds, between two times that know their zone;
        returns the id of the silence."""
        body = {
            "matchers": [matcher.written() for matcher in matchers],
            "startsAt": start.isoformat(),
            "endsAt": end.isoformat(),
            "createdBy": created_by,
            "comment": comment,
        }
        # A second one, made because the first was not heard of, would go on when that is ended.
        answer = self._ask("POST", "silences", json=body, twice=False)
        return parsed(answer, lambda data: str(data["silenceID"]))

    def expire(self, silence_id: str) -> None:
        """Ends a silence now."""
        expect_nothing(self._ask("DELETE", f"silence/{quote(silence_id, safe='')}"))

    def status(self) -> Status:
        return parsed(self._ask("GET", "status"), Status.read)

    def receivers(self) -> list[str]:
        answer = self._ask("GET", "receivers")
        return parsed(answer, list_of(lambda receiver: str(receiver["name"])))

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
        until = time.monotonic() + self._deadline
        for attempt in range(_ATTEMPTS):
            pause = attempt * _PAUSE
            if (left := until - time.monotonic() - pause) <= 0:
                break
            await asyncio.sleep(pause)
            try:
                expect_nothing(await ask(left, client, url, "POST", "alerts", json=body))
                return ""
            except UnreachableError as error:
                fault = str(error)
            except AlertmanagerError as error:
                return str(error)
        return fault

    def _ask(self, method: str, path: str, *, twice: bool = True, **parts: Any) -> Answer:
        """The answer of the first peer that gives one. twice: whether a second peer may be asked
        when the first may already have done it."""
        share = self._deadline / len(self._urls)

        async def ask_in_turn(client: httpx.AsyncClient) -> Answer:
            faults: list[str] = []
            for url in self._urls:
                try:
                    return await ask(share, client, url, method, path, **parts)
                except UnreachableError as error:
                    faults.append(str(error))
                    if not twice and isinstance(error, SilentError):
                        break
            raise AlertmanagerError("; ".join(faults))

        return asyncio.run(self._with_client(ask_in_turn))

    async def _with_client(self, work: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
        headers = {"Authorization": f"Bearer {self._token()}"} if self._token else {}
        async with httpx.AsyncClient(
            verify=self._tls, headers=headers, timeout=self._deadline, trust_env=False
        ) as client:
            return await work(client)


def _filter(matchers: Iterable[Matcher]) -> Mapping[str, list[str]]:
    return {"filter": [str(matcher) for matcher in matchers]}
