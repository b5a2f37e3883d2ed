"""The page: a skeleton that stays, and parts that the stream replaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2s
from typing import Protocol

from .assets import Assets
from .headline import headline
from .html import Html, join, tag
from .machines import engines, machines
from .rest import changes, how_to_be_judged, missing
from .svg import shape
from .told import alerts
from .watch import Facts
from .words import clock

SECTIONS = (
    "alerts", "judged", "objectives", "tiers", "business", "machines", "changes", "missing",
)  # fmt: skip
"""In the order in which whoever was woken needs them; the names of the parts, `headline` and
`about` apart. A part may be empty. What a demo can break stands after the alerts."""
_DEMO = "demo"
_REFRESH = 10  # seconds, where no script runs


@dataclass(frozen=True, slots=True)
class Part:
    """What stands in the element of that id."""

    id: str
    html: Html

    @property
    def version(self) -> str:
        return blake2s(self.html.encode(), digest_size=8).hexdigest()


class Simulation(Protocol):
    """What is watched where nothing real is. simulated: what is, in a sentence."""

    @property
    def simulated(self) -> str: ...

    def panel(self) -> Html:
        """What can be done to it, under the heading `demo-h`."""
        ...


def parts(facts: Facts, simulation: Simulation | None = None) -> list[Part]:
    found = [Part(name, html or Html()) for name, html in _parts(facts)]
    return found if simulation is None else [*found, Part(_DEMO, simulation.panel())]


def _parts(facts: Facts) -> Iterator[tuple[str, Html | None]]:
    now, judgement = headline(facts), facts.judgement
    yield "headline", tag("span", shape(now.level), " ", now.text,
                          class_=f"state {now.level}", data_title=now.title)  # fmt: skip
    yield "about", _about(facts)
    yield "alerts", alerts(facts)
    yield "judged", how_to_be_judged() if facts.judging is None else None
    if judgement is not None and facts.judging is not None:
        from .business import tiers
        from .objectives import objectives

        yield "objectives", objectives(facts, judgement)
        yield "tiers", tiers(facts.judging.judge.plan, judgement)
    from .business import business

    yield "business", business(facts)
    yield "machines", machines(facts)
    yield "changes", changes(facts)
    yield "missing", missing(facts)


def _about(facts: Facts) -> Html:
    judgement = facts.judgement
    each = [
        engines(facts),
        (f"Owner: {facts.judging.judge.plan.owner}" if facts.judging else None),
        join("Judged at ", clock(judgement.at, facts.at)) if judgement is not None else None,
    ]
    return tag("ul", [tag("li", one) for one in each if one is not None])


def page(facts: Facts, assets: Assets, simulation: Simulation | None = None) -> str:
    """The whole document."""
    service = facts.judging.judge.plan.service if facts.judging else "inferslo sidecar"
    made = {part.id: part for part in parts(facts, simulation)}
    sections = SECTIONS if simulation is None else (SECTIONS[0], _DEMO, *SECTIONS[1:])
    body = join(
        tag("a", "To the alerts", href="#main", class_="skip"),
        tag("p", tag("strong", "SIMULATED"), f" {simulation.simulated}", class_="simulated",
            role="note") if simulation else None,
        tag(
            "header",
            tag("h1", service),
            _part(made["headline"], "p", role="status"),
            _part(made["about"], "div"),
            tag("p", tag("span", "This page is not live: no script runs.", id="link",
                         role="status"), tag("span", class_="age", id="link-age"), class_="link"),
        ),
        tag("main", [_section(name, made.get(name)) for name in sections], id="main"),
        _footer(assets.version, judged=facts.judging is not None),
    )  # fmt: skip
    title = f"{'SIMULATED ' if simulation else ''}{service}"
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{headline(facts).title} · {title}"),
        tag("link", rel="icon", href="/page/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/page/page.css"),
        tag("script", src="/page/page.js", defer=True),
        tag("noscript", tag("meta", http_equiv="refresh", content=str(_REFRESH))),
    )
    document = tag("html", tag("head", head), _body(body, facts, assets.edition), lang="en")
    return f"<!doctype html>\n{document}\n"


def _body(body: Html, facts: Facts, edition: str) -> Html:
    return tag("body", body, data_now=facts.at, data_edition=edition)


def _part(part: Part, name: str, **attributes: str) -> Html:
    return tag(name, part.html, id=part.id, data_part=part.version, **attributes)


def _section(name: str, part: Part | None) -> Html:
    return _part(part or Part(name, Html()), "section", aria_labelledby=f"{name}-h")


def _footer(version: str, *, judged: bool) -> Html:
    links = [("/v1/status", "Sources as JSON"), ("/metrics", "Metrics")]
    if judged:
        links = [("/runbooks/", "Runbooks"), ("/v1/slo", "Judgement as JSON"), *links]
    items = [tag("li", tag("a", word, href=url)) for url, word in links]
    nav = tag("nav", tag("ul", items), aria_label="More of this sidecar")
    return tag("footer", nav, tag("p", f"inferslo {version}. All times are UTC."))
