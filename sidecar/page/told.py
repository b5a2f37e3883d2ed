"""Alerts that fire, one for all tiers that are told of the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..judge.levels import Level, of_severity
from .html import Html, join, tag
from .svg import state
from .watch import Facts
from .words import clock, ident, sentence

if TYPE_CHECKING:
    from ..judge.firing import Firing

_MOST = 30


@dataclass(frozen=True, slots=True)
class Told:
    """The same alert at each tier, the gravest and lowest tier first."""

    id: str
    firing: tuple[Firing, ...]
    texts: Mapping[str, str]

    @property
    def about(self) -> str:
        """What the alert's summary is about: the objective, or what stands in its place."""
        return self.firing[0].labels["slo"]

    @property
    def name(self) -> str:
        return self.firing[0].alert.alert

    @property
    def feels(self) -> str:
        impact = self.texts.get("impact", "").rstrip(".")
        return impact[:1].lower() + impact[1:]

    @property
    def description(self) -> str:
        """What the SLO file says of the objective; may be empty."""
        return self.texts.get("description", "")

    @property
    def level(self) -> Level:
        return of_severity(self.firing[0].labels["severity"])

    @property
    def since(self) -> float:
        return min(one.since for one in self.firing)

    def tiers(self, severity: str) -> list[str]:
        return [one.labels["tier"] for one in self.firing if one.labels["severity"] == severity]


def told(firing: Iterable[Firing]) -> list[Told]:
    """In the order in which they come; a judgement has the gravest first."""
    from ..judge.gravity import about
    from ..judge.texts import filled

    groups: dict[tuple[str, ...], list[Firing]] = {}
    for one in firing:
        groups.setdefault(about(one.alert.alert, one.labels), []).append(one)
    found = []
    for key, each in groups.items():
        each.sort(key=lambda one: (one.labels["severity"] != "page", one.labels["tier"]))
        found.append(Told(ident("alert", key), tuple(each), filled(each[0])))
    return found


def alerts(facts: Facts) -> Html | None:
    """The section; None where nothing is judged."""
    judging, judgement = facts.judging, facts.judgement
    if judging is None or judgement is None:
        return None
    firing = told(judgement.alerts)
    heading = tag("h2", "Alerts", id="alerts-h")
    if not firing:
        unknown = judging.doubt(facts.at)
        calm = "Nobody is told of anything now."
        text = "Whether anybody should be told is not known." if unknown else calm
        return join(heading, tag("p", text, class_="calm"))
    more = len(firing) - _MOST
    return join(
        heading,
        tag("ol", [_alert(one, facts.at) for one in firing[:_MOST]], class_="alerts"),
        tag("p", f"And {more} more: /v1/slo has all.") if more > 0 else None,
    )


def _alert(alert: Told, now: float) -> Html:
    word = "Page" if alert.level is Level.PAGE else "Ticket"
    actions = [line.partition(". ")[2] or line for line in _lines(alert.texts.get("actions"))]
    return tag(
        "li",
        tag("h3", state(alert.level, word), " ", tag("span", alert.texts["summary"])),
        tag("p", alert.description, class_="small") if alert.description else None,
        tag("p", tag("strong", "Users feel: "), alert.texts.get("impact"), class_="impact"),
        _do_first(alert, [tag("li", action) for action in actions]) if actions else None,
        tag("p", _links(alert), class_="links"),
        tag("ul", [_tier(one, now) for one in alert.firing], class_="tiers"),
        class_=f"alert {alert.level}", id=alert.id,
    )  # fmt: skip


def _do_first(alert: Told, actions: list[Html]) -> Html:
    """A ticket can wait, and should not push aside what cannot."""
    title, steps = tag("strong", "Do first"), tag("ol", actions)
    if alert.level is Level.PAGE:
        return join(tag("p", title), steps)
    return tag("details", tag("summary", title, id=f"{alert.id}-do"), steps, id=f"{alert.id}-first")


def _tier(one: Firing, now: float) -> Html:
    how = "is paged" if one.labels["severity"] == "page" else "has a ticket"
    who = f"Tier {one.labels['tier']}, {one.labels['team']}, {how} since "
    return tag("li", who, clock(one.since, now))


def _links(alert: Told) -> list[Html]:
    from ..judge.texts import runbook

    links = [
        _link(runbook(alert.firing[0]), "Runbook", alert),
        _link(alert.texts.get("dashboard_url", ""), "Dashboard", alert),
    ]
    return [link for link in links if link is not None]


def _link(url: str, word: str, alert: Told) -> Html | None:
    """A link, if it is one that a browser may follow."""
    if urlsplit(url).scheme not in ("", "http", "https") or not url:
        return None
    name = f"{word}: {alert.name}"
    return tag("a", name, href=url, id=f"{alert.id}-{word}", rel="noreferrer")


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines()


def who(alerts: Iterable[Told], tier: int) -> list[Html]:
    """Links to what a tier is told of now."""
    return [
        tag("a", sentence(alert.about), href=f"#{alert.id}", id=f"{alert.id}-t{tier}")
        for alert in alerts
        if any(one.labels["tier"] == str(tier) for one in alert.firing)
    ]
