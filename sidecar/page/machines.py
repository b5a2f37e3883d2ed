"""Each engine, GPU, host and gateway: how its source stands, and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...exporters.names import Feed
from .figures import Shown, groups, shown
from .html import Html, join, row, table, tag
from .levels import Level, of_source
from .svg import spark, state
from .watch import Facts
from .words import clock, several

_MOST = 32
_TITLES = {
    Feed.ENGINE: "Engine", Feed.GPU: "GPU", Feed.HOST: "Host of", Feed.GATEWAY: "Gateway",
}  # fmt: skip
_COLUMNS = ("Source", "State", "Last read", "What is wrong")


def machines(facts: Facts) -> Html:
    all_of_them = [(feed, group) for feed in _TITLES for group in groups(facts.trends, feed)]
    cards = [_card(facts, feed, group) for feed, group in all_of_them[:_MOST]]
    more = len(all_of_them) - _MOST
    return join(
        tag("h2", "Engines, GPUs, host", id="machines-h"),
        tag("div", cards, class_="cards") if cards else tag("p", "No number is read now."),
        tag("p", f"And {more} more: /metrics has all.") if more > 0 else None,
        _sources(facts),
    )


def _card(facts: Facts, feed: Feed, group: str) -> Html:
    said = _facts(facts, group) if feed is Feed.ENGINE else ""
    return tag(
        "article",
        tag("h3", f"{_TITLES[feed]} {group}".rstrip()),
        tag("p", said, class_="small") if said else None,
        tag("dl", [_figure(one) for one in shown(facts.trends, feed, group)]),
        class_="card",
    )


def _figure(one: Shown) -> Html:
    warn = one.figure.warn is not None and one.value >= one.figure.warn
    text = state(Level.TICKET, f"{one.text}, high") if warn else one.text
    line = spark(one.line, f"{one.figure.title} in the last hour, now {one.text}")
    number = tag("span", text, class_="number")
    return tag("div", tag("dt", one.figure.title), tag("dd", number, line))


def _facts(facts: Facts, engine: str) -> str:
    for source in facts.status["sources"]:
        if source["name"] == engine:
            said: dict[str, str] = source.get("facts", {})
            known = {key.replace("_", " "): value for key, value in said.items() if value}
            return ", ".join(f"{key} {value}" for key, value in known.items())
    return ""


def _sources(facts: Facts) -> Html:
    rows = [_source(source, facts.at) for source in facts.status["sources"]]
    if not rows:
        return tag("p", "Nothing is read.")
    return join(
        tag("h3", several(len(rows), "source"), id="sources-h"),
        table("sources-h", _COLUMNS, rows),
    )


def _source(source: dict[str, Any], now: float) -> Html:
    read = source["last_success"]
    cells = (
        source["name"],
        state(of_source(source["state"]), source["state"]),
        "never" if read is None else clock(read, now) if source["state"] != "up" else "just now",
        source.get("error", {}).get("detail", "–"),
    )
    return row(_COLUMNS, cells)


def names_of_engines(facts: Facts) -> Iterator[str]:
    """For the head of the page."""
    for source in facts.status["sources"]:
        said = source.get("facts", {})
        if "engine_type" in said or "version" in said:
            yield source["name"]
