"""One engine, read over HTTP: the source that the sidecar polls."""

from __future__ import annotations

import json
import math
from urllib.parse import urljoin

from ..exposition import Page, Parser
from ..http import Fetcher
from ..names import ENGINE_UP
from ..reading import ErrorKind, Observation, Point, SourceError
from ..replicas import start_time
from . import ENGINES, Engine, detect, explain_unknown
from .series import HTTP_REQUESTS

_READS_UNTIL_ASKED_AGAIN = 10
_MAX_ANSWER = 4096  # bytes of JSON about the version
_MAX_VERSION = 64  # characters
# The server has answered, so asking again would tell no more.
_ANSWERED = (
    ErrorKind.STATUS, ErrorKind.UNAUTHORIZED, ErrorKind.REDIRECT, ErrorKind.TOO_LARGE,
)  # fmt: skip


class EngineSource:
    """Reads the metrics page at `url`, and asks for `version` beside it.

    name: the labels `engine` and `source`. engine_type: a key of ENGINES; None finds it out from
    the page. interval, deadline: seconds; the defaults are for who reads it without a poller.
    count_first: as for `Vllm`.
    """

    def __init__(
        self,
        name: str,
        url: str,
        fetcher: Fetcher,
        engine_type: str | None = None,
        *,
        interval: float = 0.0,
        deadline: float = math.inf,
        kv_cache_groups: int | None = None,
        count_first: bool = False,
    ) -> None:
        self.name = name
        self.interval = interval
        self.deadline = deadline
        self._url = url
        self._fetcher = fetcher
        self._engine_type = engine_type
        self._kv_cache_groups = kv_cache_groups
        self._count_first = count_first
        self._parser = Parser()
        self._engine: Engine | None = None
        self._version: str | None = None  # None: not told since the engine's last start
        self._reads_until_asked = 0
        self._started: float | None = None

    def up_point(self, up: bool) -> Point:
        return Point(ENGINE_UP, (self.name,), float(up))

    def observe(self) -> Observation:
        try:
            answer = self._fetcher.get(self._url)
            page = self._parser.parse(answer.body, answer.content_type)
        except SourceError:
            self._forget_version()  # it may come back as another
            raise
        self._reads_until_asked -= 1
        self._note_start(page)
        if self._engine is None:
            self._engine = self._make_engine(page)
        return self._engine.observe(page, self._ask_version())

    def _note_start(self, page: Page) -> None:
        started = start_time(page)
        if started != self._started:
            self._started = started
            self._forget_version()

    def _forget_version(self) -> None:
        self._version, self._reads_until_asked = None, 0

    def _make_engine(self, page: Page) -> Engine:
        found = self._engine_type or detect(page) or self._detect_without_statistics(page)
        if found is None:
            raise SourceError(ErrorKind.UNKNOWN_ENGINE, explain_unknown(self._url, page))
        return ENGINES[found](
            self.name, kv_cache_groups=self._kv_cache_groups, count_first=self._count_first
        )

    def _detect_without_statistics(self, page: Page) -> str | None:
        """vLLM under --disable-log-stats, before its first request: HTTP counters without a
        sample, and /version."""
        return "vllm" if page.declared(HTTP_REQUESTS) and self._ask_version() else None

    def _ask_version(self) -> str:
        """Empty where the engine does not tell, or could not be asked as yet."""
        if self._version is None and self._reads_until_asked <= 0:
            self._version = self._version_told()
            self._reads_until_asked = _READS_UNTIL_ASKED_AGAIN
        return self._version or ""

    def _version_told(self) -> str | None:
        """None: there was no answer."""
        try:
            return _version_in(self._fetcher.get(urljoin(self._url, "version")).body)
        except SourceError as error:
            return "" if error.kind in _ANSWERED else None


def _version_in(answer: bytes) -> str:
    """Empty unless it is a short printable text: it becomes a label, and is shown on terminals."""
    if len(answer) > _MAX_ANSWER:
        return ""
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    version = told.get("version") if isinstance(told, dict) else None
    if not isinstance(version, str) or len(version) > _MAX_VERSION or not version.isprintable():
        return ""
    return version
