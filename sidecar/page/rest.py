"""The last parts of the page: what changed, what is not measured, and how to be judged."""

from __future__ import annotations

from collections.abc import Iterator

from .changes import Change
from .html import Content, Html, join, row, table, tag
from .svg import state
from .watch import Facts
from .words import clock, sentence

_GAPS = ("Signal", "Where", "Why", "How to get it")
_MOST = 80


def changes(facts: Facts) -> Html:
    heading = tag("h2", "Last changes", id="changes-h")
    if not facts.changes:
        return join(heading, tag("p", "Nothing has changed since this process began."))
    return join(heading, tag("ol", [_change(each, facts.at) for each in facts.changes]))


def _change(change: Change, now: float) -> Html:
    was = f" (was: {change.was.word})" if change.was is not None else ""
    return tag(
        "li",
        tag("span", clock(change.at, now), class_="when"), " ",
        tag("span", sentence(change.what), ": ", state(change.now.level, change.now.word), was),
    )  # fmt: skip


def missing(facts: Facts) -> Html:
    heading = tag("h2", "Not measured", id="missing-h")
    rows = list(dict.fromkeys(_gaps(facts)))
    if not rows:
        return join(heading, tag("p", "Nothing that is known of is missing."))
    more = len(rows) - _MOST
    drawn = table("missing-h", _GAPS, [row(_GAPS, each) for each in rows[:_MOST]])
    rest = tag("p", f"And {more} more: /v1/status has all.") if more > 0 else None
    return join(heading, drawn, rest)


def _gaps(facts: Facts) -> Iterator[tuple[str, ...]]:
    judgement = facts.judgement
    for name, why in (judgement.unjudged if judgement is not None else {}).items():
        yield f"objective {name}", "judge", why, "a Prometheus with the compiled rules judges it"
    for source in facts.status["sources"]:
        for gap in source.get("missing", ()):
            yield gap["signal"], source["name"], gap["reason"], gap["remedy"]
    for gap in facts.status["not_watched"]:
        yield gap["signal"], "", gap["reason"], gap["remedy"]
    if "detail" in facts.status["events"]:
        yield "events", "journal", facts.status["events"]["detail"], "make room on its disk"


def how_to_be_judged() -> Html:
    steps: tuple[Content, ...] = (
        (tag("code", "inferslo init"), " asks three questions, reads this engine, and writes ",
         tag("code", "slo.yaml"), "."),
        ("Start the sidecar with ", tag("code", "--slo slo.yaml"), "."),
        "This page then shows each objective, its budget, its alerts, and what to do.",
    )  # fmt: skip
    return join(
        tag("h2", "How to be judged", id="judged-h"),
        tag("ol", [tag("li", step) for step in steps]),
    )
