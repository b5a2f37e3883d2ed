"""Reads one page and says what it is of and what it gives, by the same adapters as the poller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..exporters.engines import ENGINES, detect, explain_unknown
from ..exporters.engines.source import EngineSource
from ..exporters.exposition import Page, parse
from ..exporters.gateways.litellm import LiteLlm, is_litellm
from ..exporters.http import Fetcher, Response
from ..exporters.reading import ErrorKind, Observation, SourceError
from ..slo.files import near
from .errors import StartError
from .printable import printable
from .settings.targets import Target

LITELLM = "litellm"
MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Interpretation:
    """name: the label `engine` or `gateway`; type: a key of ENGINES, or LITELLM."""

    name: str
    type: str
    observation: Observation

    @property
    def version(self) -> str:
        """Empty where the engine does not tell."""
        return self.observation.facts.get("version", "")


@dataclass(frozen=True, slots=True)
class _Replay:
    """A fetcher that has read one page already."""

    url: str
    answer: Response
    fetcher: Fetcher

    def get(self, url: str) -> Response:
        return self.answer if url == self.url else self.fetcher.get(url)


def interpret_url(target: Target, fetcher: Fetcher) -> Interpretation:
    """Reads /metrics, and /version of an engine. Raises SourceError."""
    answer = fetcher.get(target.metrics_url)
    page = parse(answer.body, answer.content_type)
    if is_litellm(page):
        return _litellm(target.name, page)
    replay = _Replay(target.metrics_url, answer, fetcher)
    source = EngineSource(target.name, target.metrics_url, replay, count_first=True)
    return _engine(target.name, source.observe())


def interpret_file(path: Path) -> Interpretation:
    """Raises SourceError, and StartError if the file cannot be read or is too large."""
    try:
        with path.open("rb") as file:
            body = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        hint = near(path) or "; a URL begins with http://"
        raise StartError(f"{path} cannot be read: {error.strerror}{hint}") from None
    return interpret_page(printable(path.name), body)


def interpret_page(name: str, body: bytes) -> Interpretation:
    """A page that lies here, so that its server cannot be asked for its version.

    Raises SourceError, and StartError if it is larger than MAX_FILE_BYTES.
    """
    if len(body) > MAX_FILE_BYTES:
        raise StartError(f"{name} is larger than {MAX_FILE_BYTES} bytes: is it a metrics page?")
    page = parse(body)
    if is_litellm(page):
        return _litellm(name, page)
    engine = detect(page)
    if engine is None:
        raise SourceError(ErrorKind.UNKNOWN_ENGINE, explain_unknown(name, page))
    return _engine(name, ENGINES[engine](name).observe(page, ""))


def _litellm(name: str, page: Page) -> Interpretation:
    return Interpretation(name, LITELLM, LiteLlm(name).observe(page))


def _engine(name: str, observation: Observation) -> Interpretation:
    return Interpretation(name, observation.facts["engine_type"], observation)
