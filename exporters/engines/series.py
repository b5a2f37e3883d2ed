"""vLLM's series on a page: whatever their prefix, added up over everything but the model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeVar

from ..exposition import Page, Sample
from ..reading import ErrorKind, Gap, Histogram, SourceError

# The first that is present wins. OpenShift AI puts `kserve_` before names, since 2026 beside the
# originals; Ray's agent puts `ray_`, and from Ray's vLLM 0.11 on has no colon.
PREFIXES = ("vllm:", "kserve_vllm:", "ray_vllm_", "ray_vllm:")
HTTP_REQUESTS = "http_requests_total"
# What is beyond these is no engine's page, and must not become series of ours.
MAX_MODELS = 100
MAX_BUCKETS = 200  # of one histogram
MAX_LABEL = 256  # characters of a label value that is passed on
_BEYOND = 1e100  # what is less can be added up and squared
Key = TypeVar("Key", bound=Hashable)


class UnusableError(Exception):
    """Samples are there, but no value follows from them; says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """The samples of the first of several names that has any; none if `samples` is empty."""

    name: str
    samples: Sequence[Sample]

    @property
    def origin(self) -> str:
        count = len(self.samples)
        return self.name if count == 1 else f"{self.name} ({count} series)"

    def total(self) -> float:
        """Over all series; 0 if there are none. Raises UnusableError."""
        return math.fsum(self.sums().values())

    def sums(self) -> dict[str, float]:
        """By model_name. Raises UnusableError."""
        return {model: math.fsum(values) for model, values in self.values().items()}

    def values(self) -> dict[str, list[float]]:
        """By model_name, one value per data-parallel engine. Raises UnusableError."""
        return self.by(model_of)

    def by(self, key: Callable[[Sample], Key]) -> dict[Key, list[float]]:
        """The values by what `key` says of their series. Raises UnusableError.

        All that vLLM publishes counts or measures something: nothing is below zero.
        """
        found: defaultdict[Key, list[float]] = defaultdict(list)
        for sample in self.samples:
            if not abs(sample.value) < _BEYOND:  # nor if it is NaN
                raise UnusableError(f"{self.name} is not a number, or beyond all measure")
            if sample.value < 0:
                raise UnusableError(f"{self.name} is below zero")
            found[key(sample)].append(sample.value)
        return found


class VllmPage:
    """Series are asked for by their name without prefix."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.prefix = prefix_of(page)

    @property
    def has_statistics(self) -> bool:
        """False under --disable-log-stats: only HTTP and process series are left."""
        return self.prefix is not None

    @property
    def is_ray(self) -> bool:
        return self.prefix is not None and self.prefix.startswith("ray_")

    @property
    def counts_aborts(self) -> bool:
        """Whether this is the Rust front end: it alone speaks OpenMetrics unasked.

        The Python front end answers in OpenMetrics only on demand, and tells its cache config.
        """
        return (
            self.page.openmetrics
            and self.has_statistics
            and not self.find("cache_config_info").samples
        )

    def find(self, *names: str) -> Found:
        """The first name with samples. Two names of one thing are never added."""
        if self.prefix is None:
            return Found("", ())
        for name in names:
            for exposed in self._spellings(name):
                if samples := self.page.samples(exposed):
                    return Found(exposed, samples)
        return Found(self.prefix + names[0], ())

    def histograms(self, *names: str) -> tuple[str, dict[str, Histogram]]:
        """The origin, and by model_name the sum over engines. Raises UnusableError."""
        found = self.find(*(name + "_bucket" for name in names))
        name = found.name.removesuffix("_bucket")
        sums = {identity(sample): sample.value for sample in self.page.samples(name + "_sum")}
        buckets: defaultdict[frozenset[tuple[str, str]], dict[float, float]] = defaultdict(dict)
        models = {}
        for sample in found.samples:
            key = identity(sample)
            models[key] = model_of(sample)
            buckets[key][_bound(name, sample)] = sample.value
        by_model: defaultdict[str, list[Histogram]] = defaultdict(list)
        for key, counts in buckets.items():
            by_model[models[key]].append(_histogram(name, counts, sums.get(key)))
        origin = name if len(buckets) == 1 else f"{name} ({len(buckets)} series)"
        return origin, {model: _added(name, parts) for model, parts in by_model.items()}

    def gap(self, signal: str, names: Sequence[str], remedy: str) -> Gap:
        """Why none of `names` has a sample."""
        if not self.has_statistics:
            return Gap(
                signal,
                "vLLM runs with --disable-log-stats: it publishes no statistics of its own",
                "start vLLM without --disable-log-stats",
            )
        declared = [
            exposed
            for name in names
            for exposed in self._spellings(name)
            if self.page.declared(exposed)
        ]
        if declared:
            return Gap(signal, f"{declared[0]} is declared but has no sample", remedy)
        return Gap(signal, f"no {self.prefix}{names[0]} on the page", remedy)

    def _spellings(self, name: str) -> Sequence[str]:
        """Ray's agent may leave `_total` off counters, and types them gauge: the name decides."""
        exposed = f"{self.prefix}{name}"
        if self.is_ray and name.endswith("_total"):
            return exposed, exposed.removesuffix("_total")
        return (exposed,)


def prefix_of(page: Page) -> str | None:
    """The prefix of vLLM's series; one that has samples goes before one that is only declared."""
    with_samples = (
        prefix for prefix in PREFIXES if any(name.startswith(prefix) for name in page.names)
    )
    declared = (prefix for prefix in PREFIXES if page.has_prefix(prefix))
    return next(chain(with_samples, declared), None)


def refuse_excess(page: Page) -> None:
    """Raises SourceError if what would be published of the page has no bounds."""
    models = page.label_values("model_name")
    if len(models) > MAX_MODELS or max(map(len, models), default=0) > MAX_LABEL:
        raise SourceError(
            ErrorKind.TOO_LARGE,
            f"{len(models)} values of model_name, the longest of"
            f" {max(map(len, models))} characters, are more than inferslo publishes of one page"
            f" ({MAX_MODELS} of {MAX_LABEL}): name each engine's own page",
        )


def model_of(sample: Sample) -> str:
    return sample.labels.get("model_name", "")


def identity(sample: Sample) -> frozenset[tuple[str, str]]:
    """What tells a series from others of its family; `le` tells only buckets apart."""
    return frozenset(item for item in sample.labels.items() if item[0] != "le")


def _bound(name: str, sample: Sample) -> float:
    try:
        bound = float(sample.labels["le"])
    except (KeyError, ValueError):
        bound = math.nan
    if not (abs(bound) < _BEYOND or bound == math.inf):
        raise UnusableError(f"{name} has a bucket without a number in `le`")
    return bound


def _histogram(name: str, buckets: Mapping[float, float], sum: float | None) -> Histogram:
    bounds = tuple(sorted(buckets))
    counts = tuple(buckets[bound] for bound in bounds)
    if sum is None:
        raise UnusableError(f"{name} has no _sum")
    if len(bounds) > MAX_BUCKETS:
        raise UnusableError(f"{name} has more than {MAX_BUCKETS} buckets")
    if bounds[-1] != math.inf:
        raise UnusableError(f'{name} has no bucket le="+Inf"')
    if not all(abs(value) < _BEYOND for value in (*counts, sum)):
        raise UnusableError(f"{name} has a count or a sum that is not a number")
    if counts[0] < 0 or any(above < below for below, above in pairwise(counts)):
        raise UnusableError(f"{name} has a bucket that counts less than the one below it")
    return Histogram(bounds, counts, sum)


def _added(name: str, parts: Sequence[Histogram]) -> Histogram:
    if len({part.bounds for part in parts}) > 1:
        raise UnusableError(f"{name} has other buckets on one data-parallel engine than on another")
    counts = tuple(sum(counts) for counts in zip(*(part.counts for part in parts), strict=True))
    return Histogram(parts[0].bounds, counts, sum(part.sum for part in parts))
