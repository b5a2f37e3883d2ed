"""Finds engines and gateways on this machine, by reading the usual ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..exporters.http import Fetcher
from ..exporters.reading import ErrorKind, InfersloError, SourceError
from .interpret import interpret_url
from .settings.targets import Target

# Port by default → whose default it is.
USUAL_PORTS: Mapping[int, str] = {
    3000: "TGI",
    4000: "LiteLLM",
    8000: "vLLM, TensorRT-LLM, Dynamo",
    8001: "a second vLLM",
    8002: "Triton",
    8080: "llama.cpp, TGI",
    23333: "LMDeploy",
    30000: "SGLang",
}


class NothingFoundError(InfersloError):
    """No engine answers on this machine; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Who answers at `url`. type: as in Interpretation, empty if inferslo does not know it;
    version: empty where it does not tell; detail: why it is not known."""

    url: str
    type: str = ""
    version: str = ""
    detail: str = ""


def discover(
    ports: Iterable[int], fetcher: Callable[[], Fetcher], host: str = "127.0.0.1"
) -> list[Answer]:
    """Reads all ports at once, each through a fetcher of its own; silent ones are left out."""
    urls = [f"http://{host}:{port}" for port in ports]
    with ThreadPoolExecutor(len(urls)) as pool:
        answers = pool.map(lambda url: _ask(url, fetcher()), urls)
        return [answer for answer in answers if answer is not None]


def _ask(url: str, fetcher: Fetcher) -> Answer | None:
    try:
        read = interpret_url(Target(url=url), fetcher)
    except SourceError as error:
        nobody = error.kind is ErrorKind.REFUSED
        return None if nobody else Answer(url, detail=error.detail)
    return Answer(url, read.type, read.version)
