"""The runbooks of the alerts of an SLO file, as plain pages."""

from __future__ import annotations

from markdown_it import MarkdownIt

from ...rules.runbooks import pages
from ...slo.plan import Plan
from .html import Html, join, tag


def runbook_page(plan: Plan, alert: str) -> str | None:
    """None if no alert of that name may fire."""
    text = pages(plan).get(f"{alert}.md")
    if text is None:
        return None
    # Without html=False what stands in an SLO file could become markup.
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    return _page(alert, Html(markdown.render(text)))


def runbook_list(plan: Plan) -> str:
    names = sorted(name.removesuffix(".md") for name in pages(plan))
    items = [tag("li", tag("a", name, href=f"/runbooks/{name}")) for name in names]
    return _page("Runbooks", join(tag("h1", "Runbooks"), tag("ul", items)))


def _page(title: str, body: Html) -> str:
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="/page/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/page/page.css"),
    )
    back = tag("nav", tag("a", "How all stands now", href="/"), " · ",
               tag("a", "All runbooks", href="/runbooks/"), aria_label="Back")  # fmt: skip
    document = tag("html", tag("head", head),
                   tag("body", back, tag("main", body, class_="text")), lang="en")  # fmt: skip
    return f"<!doctype html>\n{document}\n"
