"""Finds engines and gateways on this machine, by reading the usual ports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..exporters.exposition import parse
from ..exporters.http import Fetcher
from ..exporters.reading import ErrorKind, SourceError
from .recognise import recognise

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


@dataclass(frozen=True, slots=True)
class Answer:
    """What answers on a port. type: as in `recognise`, empty if inferslo does not know it;
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
        page = fetcher.get(url + "/metrics")
        type = recognise(parse(page.body, page.content_type))
    except SourceError as error:
        nobody = error.kind is ErrorKind.REFUSED
        return None if nobody else Answer(url, detail=error.detail)
    return Answer(url, type, version(url, fetcher))


def version(url: str, fetcher: Fetcher) -> str:
    """What the server says at /version (vLLM does); empty if it does not."""
    try:
        return str(json.loads(fetcher.get(url + "/version").body)["version"])
    except (SourceError, ValueError, KeyError, TypeError):
        return ""
