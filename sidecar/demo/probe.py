"""What the in-engine probe will publish of the engine, from the simulation's truth.

The probe itself is not part of this version; a recording can leave these families out.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...exporters import names
from ...exporters.reading import Point
from .buckets import PROBE
from .fleet import Replica
from .tally import SUM

_HISTOGRAMS = {
    "ttft": names.CLASS_TTFT, "tpot": names.CLASS_TPOT, "itl": names.CLASS_ITL,
    "e2e": names.CLASS_E2E, "queue": names.CLASS_QUEUE,
}  # fmt: skip
_COUNTERS = {"requests": names.CLASS_REQUESTS, "goodput": names.CLASS_GOODPUT}


def points(replica: Replica) -> Iterator[Point]:
    own, tally = (replica.name, replica.engine.config.model_name), replica.engine.counts.probe
    for key in list(tally):
        if key[-1] == SUM:  # one for each histogram
            (what, *labels), _ = key
            histogram = tally.histogram((what, *labels), PROBE[what])
            yield Point(_HISTOGRAMS[what], (*own, *labels), histogram)
        elif key[0] in _COUNTERS:
            what, *labels = key
            yield Point(_COUNTERS[what], (*own, *labels), tally[key])
    if (waste := replica.state.tail_waste) is not None:
        yield Point(names.KV_TAIL_WASTE, own, waste)
    yield from replica.gpu.allocator(replica.name)
