"""Each engine, GPU, host and gateway: how its source stands, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...exporters.names import Feed
from ..judge.levels import Level, of_source
from .figures import Shown, group_of, groups, limit, shown
from .html import Html, join, row, table, tag
from .svg import spark, state
from .watch import Facts
from .words import clock, several

if TYPE_CHECKING:
    from ...slo.plan import Plan

_MOST = 32
_TITLES = {
    Feed.ENGINE: "Engine", Feed.GPU: "GPU", Feed.HOST: "Host of", Feed.GATEWAY: "Gateway",
}  # fmt: skip
_COLUMNS = ("Source", "State", "Last read", "What is wrong")


def machines(facts: Facts) -> Html:
    all_of_them = [(feed, group) for feed in _TITLES for group in _groups(facts, feed)]
    cards = [_card(facts, feed, group) for feed, group in all_of_them[:_MOST]]
    more = len(all_of_them) - _MOST
    return join(
        tag("h2", "Engines, GPUs, host", id="machines-h"),
        tag("div", cards, class_="cards") if cards else tag("p", "No number is read now."),
        tag("p", f"And {more} more: /metrics has all.") if more > 0 else None,
        _sources(facts),
    )


def _groups(facts: Facts, feed: Feed) -> list[str]:
    """Of which there are numbers, and those that are to be watched and give none."""
    watched = {group for of, group in _watched(facts) if of == feed}
    return sorted({*groups(facts.trends, feed), *watched})


def _watched(facts: Facts) -> dict[tuple[str, str], dict[str, Any]]:
    """The sources that are of one engine, GPU or gateway, by feed and group."""
    found = {}
    for source in facts.status["sources"]:
        if watches := source.get("watches"):
            found[watches["feed"], group_of(watches)] = source
    return found


def _card(facts: Facts, feed: Feed, group: str) -> Html:
    source = _watched(facts).get((feed, group), {})
    said, plan = _facts(source), facts.judging.judge.plan if facts.judging else None
    return tag(
        "article",
        tag("h3", f"{_TITLES[feed]} {group}".rstrip()),
        tag("p", said, class_="small") if said else None,
        tag("p", _absent(source, facts.at), _why(source)) if _is_absent(source) else None,
        tag("dl", [_figure(one, plan) for one in shown(facts.trends, feed, group)]),
        class_="card",
    )


def _is_absent(source: Mapping[str, Any]) -> bool:
    return bool(source) and source["state"] != "up"


def _absent(source: Mapping[str, Any], now: float) -> Html:
    """down since 12:03:30 UTC."""
    word, last = source["state"], source["last_success"]
    since = join(" since ", clock(last, now)) if last is not None else ", never read yet"
    return join(state(of_source(word), word), since)


def _why(source: Mapping[str, Any]) -> str:
    return f": {source['error']['detail']}" if "error" in source else ""


def _figure(one: Shown, plan: Plan | None) -> Html:
    high = limit(one.figure, plan)
    warn = high is not None and one.value >= high
    text = state(Level.TICKET, f"{one.text}, high") if warn else one.text
    line = spark(one.line, f"{one.figure.title} in the last hour, now {one.text}")
    number = tag("span", text, class_="number")
    return tag("div", tag("dt", one.figure.title), tag("dd", number, line))


def _facts(source: Mapping[str, Any]) -> str:
    known = {key.replace("_", " "): value for key, value in source.get("facts", {}).items()}
    return ", ".join(f"{key} {value}" for key, value in known.items() if value)


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


def engines(facts: Facts) -> Html | None:
    """For the head of the page: all that are to be watched, and which of them do not answer."""
    each = [
        join(group, " ", _absent(source, facts.at)) if _is_absent(source) else group
        for (feed, group), source in _watched(facts).items()
        if feed == Feed.ENGINE
    ]
    listed = [(", " if n else "", one) for n, one in enumerate(each)]
    return join("Engines: ", listed) if each else None
