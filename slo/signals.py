"""Every signal that an objective can be about, as data.

A signal says what a user of the service feels; which families it is computed from is the
business of the rules (rules/sli.py) and of the judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType


class Shape(StrEnum):
    """What is counted.

    EVENTS: bad of all events. LATENCY: events slower than a threshold, of all.
    VALUE: a number that is over its threshold or not; only time can be counted, so such an
    objective is budgeted by timeslices.
    """

    EVENTS = "events"
    LATENCY = "latency"
    VALUE = "value"


class Needs(StrEnum):
    """The depth of measurement (DESIGN 3) without which a signal has no data."""

    SCRAPE = "scrape"
    PROBE = "probe"
    GPU = "gpu"
    EVENTS = "events"  # posted by the application, or counted by a gateway
    PROMETHEUS = "prometheus"  # whatever the user's own query reads


@dataclass(frozen=True, slots=True)
class Signal:
    """title: as in alerts ("time to first token"). threshold: unit of the threshold, "" if it
    takes none. default: threshold where the file gives none. pages: whether burning it may wake
    somebody; what no user feels directly only tickets. at_once: a VALUE that is an incident the
    moment it is over its threshold, however short. feels: what the user notices. bad: what the
    share is that an alert shows ("12 % of requests failed"); of a latency whose share is late."""

    name: str
    shape: Shape
    needs: Needs
    title: str
    feels: str
    unit: str = ""
    default: Decimal | None = None
    pages: bool = True
    at_once: bool = False
    classed: bool = False  # may be selected by class and by prompt length (needs the probe then)
    bad: str = "of requests"


_EVENTS, _LATENCY, _VALUE = Shape.EVENTS, Shape.LATENCY, Shape.VALUE
_SECONDS = "seconds"

_ALL = (
    Signal(
        "availability", _EVENTS, Needs.SCRAPE, "answered requests",
        "requests fail, time out, are turned away or come back empty", classed=True,
        bad="of requests failed",
    ),
    Signal(
        "ttft", _LATENCY, Needs.SCRAPE, "time to first token",
        "the answer takes long to begin", _SECONDS, classed=True,
    ),
    Signal(
        "tpot", _LATENCY, Needs.SCRAPE, "time per output token",
        "answers are written slowly", _SECONDS, classed=True,
    ),
    Signal(
        "itl", _LATENCY, Needs.SCRAPE, "inter-token latency",
        "the stream stalls in mid-answer", _SECONDS, classed=True, bad="of tokens",
    ),
    Signal(
        "e2e", _LATENCY, Needs.SCRAPE, "end-to-end latency",
        "whole answers take too long", _SECONDS, classed=True,
    ),
    Signal(
        "queue", _LATENCY, Needs.SCRAPE, "queue wait",
        "requests wait before any work is done on them", _SECONDS, classed=True,
    ),
    Signal(
        "goodput", _EVENTS, Needs.PROBE, "goodput",
        "requests miss at least one target of their class", classed=True,
        bad="of requests missed a target of their class",
    ),
    Signal(
        "tail_ratio", _VALUE, Needs.SCRAPE, "P95/P50 of end-to-end latency",
        "some answers take many times as long as most", "ratio", Decimal(3), pages=False,
    ),
    Signal(
        "tpot_cv", _VALUE, Needs.SCRAPE, "coefficient of variation of TPOT",
        "answers stutter: the speed of writing varies", "ratio", Decimal("0.5"), pages=False,
    ),
    Signal(
        "gpu_utilization_cv", _VALUE, Needs.GPU, "coefficient of variation of GPU utilisation",
        "nothing yet: uneven batching or load balancing", "ratio", Decimal("0.3"), pages=False,
    ),
    Signal(
        "kv_fragmentation", _VALUE, Needs.PROBE, "KV cache fragmentation",
        "nothing yet: long requests will be refused or preempted", "ratio", Decimal("0.15"),
        pages=False,
    ),
    Signal(
        "memory_growth", _VALUE, Needs.SCRAPE, "memory growth an hour (share of its limit)",
        "nothing yet: the engine will run out of memory", "ratio", Decimal("0.02"), pages=False,
    ),
    Signal(
        "agent_turn_success", _EVENTS, Needs.EVENTS, "agent turns that succeed",
        "the agent times out, breaks its format or gives up", bad="of agent turns failed",
    ),
    Signal(
        "context_retention", _EVENTS, Needs.EVENTS, "context retention",
        "the assistant forgets what was said earlier", bad="of context checks failed",
    ),
    Signal(
        "session_completion", _EVENTS, Needs.EVENTS, "sessions completed",
        "conversations end without a result", bad="of sessions ended without a result",
    ),
    Signal(
        "session_interruption", _EVENTS, Needs.EVENTS, "sessions not interrupted",
        "conversations are cut off", bad="of sessions were cut off",
    ),
    Signal(
        "fallback_rate", _EVENTS, Needs.EVENTS, "requests served without a fallback",
        "answers come from a weaker path", bad="of requests fell back",
    ),
    Signal(
        "fallback_count", _VALUE, Needs.EVENTS, "fallbacks in an hour",
        "answers come from a weaker path", "count", Decimal(50), at_once=True,
    ),
    Signal(
        "check", _EVENTS, Needs.EVENTS, "a named quality check",
        "answers are worse than promised", bad="of checks failed",
    ),
    Signal(
        "composite", _EVENTS, Needs.EVENTS, "a weighted mean of quality checks",
        "answers are worse than promised", bad="of checks failed",
    ),
    Signal(
        "promql", _EVENTS, Needs.PROMETHEUS, "your own query", "what your query measures",
        bad="of what your query counts is bad",
    ),
)  # fmt: skip

SIGNALS: Mapping[str, Signal] = MappingProxyType({signal.name: signal for signal in _ALL})
