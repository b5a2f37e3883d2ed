"""What an engine's page, live or saved, can answer: for `inferslo check` and `inferslo init`."""

from __future__ import annotations

from pathlib import Path

from ...exporters.engines import ENGINES
from ...exporters.http import Fetcher
from ...exporters.names import E2E, ENGINE_INFO, ITL, QUEUE, TPOT, TTFT, Feed
from ...exporters.reading import Histogram, Observation
from ...slo.buckets import EnginePage
from ..errors import StartError
from ..interpret import Interpretation, interpret_file, interpret_url
from ..settings.targets import Target

_HISTOGRAMS = {TTFT: "ttft", TPOT: "tpot", ITL: "itl", E2E: "e2e", QUEUE: "queue"}
# Signal of an objective → what the adapter calls the thing that it cannot be without.
_GAPS = {
    "availability": "requests_success", "ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e",
    "queue": "queue", "tail_ratio": "e2e", "tpot_cv": "tpot_moments",
}  # fmt: skip


def page_at(target: Target, fetcher: Fetcher) -> EnginePage:
    """Of a live engine; the caller closes the fetcher. Raises SourceError, and StartError for a
    gateway's."""
    return page_of(interpret_url(target, fetcher))


def page_of_capture(path: Path) -> EnginePage:
    """Of a saved page, which does not tell the version. Raises SourceError, and StartError if it
    cannot be read or is a gateway's."""
    return page_of(interpret_file(path))


def page_of(read: Interpretation) -> EnginePage:
    """Of a page that has been read. Raises StartError if it is a gateway's."""
    if read.type not in ENGINES:
        raise StartError(f"{read.name} is {read.type}, a gateway: name the engine behind it")
    gaps = {gap.signal: f"{gap.reason}; {gap.remedy}" for gap in read.observation.gaps}
    return EnginePage(
        engine_type=read.type,
        version=read.version,
        bounds=_bounds(read.observation),
        missing={signal: gaps[gap] for signal, gap in _GAPS.items() if gap in gaps},
        probed=any(point.family.feed is Feed.PROBE for point in read.observation.points),
        models=_models(read.observation),
    )


def _models(observation: Observation) -> tuple[str, ...]:
    at = ENGINE_INFO.labels.index("model_name")
    infos = {point.labels[at] for point in observation.points if point.family is ENGINE_INFO}
    return tuple(sorted(filter(None, infos)))


def _bounds(observation: Observation) -> dict[str, tuple[float, ...]]:
    """Where models differ, the bounds that all of them have: rules add up over models."""
    common: dict[str, set[float]] = {}
    for point in observation.points:
        signal = _HISTOGRAMS.get(point.family)
        if signal is not None and isinstance(point.value, Histogram):
            finite = set(point.value.bounds[:-1])
            common[signal] = common.get(signal, finite) & finite
    return {signal: tuple(sorted(bounds)) for signal, bounds in common.items()}
