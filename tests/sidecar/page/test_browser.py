"""The page in a real Chromium: live, keyboard, screen reader, colours, phone, connection lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import Open, live
from playwright.sync_api import expect
from serving import served
from stage import Played, Stage, small_plan

WALL = {"width": 1920, "height": 1080}
PHONE = {"width": 320, "height": 640}
HOSTILE = "<img src=x onerror='window.harm=1'><script>window.harm=1</script>" + "W" * 64
pytestmark = pytest.mark.browser


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, small_plan())
    stage.play(130)
    yield stage
    stage.close()


@contextmanager
def playing(stage: Stage, port: int = 0) -> Iterator[str]:
    stage.stopping = False

    def stop() -> None:
        stage.stopping = True

    with served(stage.app(), stop, port) as url:
        yield url


def test_an_incident_arrives_and_clears_without_a_reload(stage: Stage, open_page: Open) -> None:
    with playing(stage) as url:
        page = open_page(url)
        live(page)
        page.evaluate("window.loaded = 'once'")
        expect(page.get_by_role("status").first).to_contain_text("All 4 objectives are met")
        stage.play(20, slow=0.6, waiting=80)
        expect(page.get_by_role("status").first).to_contain_text("Tier 1 is told: first-token")
        expect(page).to_have_title(re.compile("^PAGE first-token · "))
        alert = page.locator(".alert.page").first
        expect(alert).to_contain_text("The answer takes long to begin")
        expect(alert).to_contain_text("Do first")
        stage.play(140)
        expect(page.get_by_role("status").first).to_contain_text("Nobody is paged")
        expect(page.locator(".alert.page")).to_have_count(0)
        assert page.evaluate("window.loaded") == "once"


def test_the_runbook_is_one_click_away(stage: Stage, open_page: Open) -> None:
    stage.play(20, slow=0.6)
    with playing(stage) as url:
        page = open_page(url)
        page.get_by_role("link", name="Runbook: InfersloTTFTBurn").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("InfersloTTFTBurn")


def test_focus_and_what_was_opened_stay_and_a_selection_holds_an_update(
    stage: Stage, open_page: Open
) -> None:
    stage.play(20, slow=0.6, bad=0.1)
    with playing(stage) as url:
        page = open_page(url)
        live(page)
        page.locator("summary").first.click()
        page.get_by_role("link", name="Runbook").first.focus()
        focused = page.evaluate("document.activeElement.id")
        before = page.locator("#alerts").get_attribute("data-part")
        stage.play(3, slow=0.9, bad=0.2)
        expect(page.locator("#alerts")).not_to_have_attribute("data-part", before or "")
        assert page.evaluate("document.activeElement.id") == focused
        expect(page.locator("details[open]")).to_have_count(1)
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#alerts ol ol'))")
        before = page.locator("#alerts").get_attribute("data-part")
        other = page.locator("#about").get_attribute("data-part")
        stage.play(3, slow=0.2)
        expect(page.locator("#about")).not_to_have_attribute("data-part", other or "")
        assert page.locator("#alerts").get_attribute("data-part") == before
        page.evaluate("getSelection().removeAllRanges()")
        expect(page.locator("#alerts")).not_to_have_attribute("data-part", before or "")


def test_a_lost_connection_is_said_and_what_was_seen_stays(stage: Stage, open_page: Open) -> None:
    with playing(stage) as url:
        page = open_page(url)
        live(page)
        page.evaluate("window.loaded = 'once'")
    link = page.locator("#link")
    expect(link).to_contain_text("Connection lost")
    expect(page.locator(".link")).to_contain_text(re.compile(r"\d+ s old"))
    expect(page.locator("#headline")).to_contain_text("All 4 objectives are met")
    expect(page.locator("#objectives tbody tr")).to_have_count(4)
    stage.play(20, slow=0.6)
    with playing(stage, int(url.rpartition(":")[2])):
        expect(link).to_have_text("Live")
        expect(page.locator("#headline")).to_contain_text("Tier 1 is told")
        assert page.evaluate("window.loaded") == "once"
        page.close()


def test_it_is_of_use_without_a_script(stage: Stage, open_page: Open) -> None:
    stage.play(20, slow=0.6)
    with playing(stage) as url:
        page = open_page(url, java_script_enabled=False)
        expect(page.locator("#headline")).to_contain_text("Tier 1 is told")
        expect(page.locator("#link")).to_contain_text("not live")
        assert '<meta http-equiv="refresh" content="10">' in page.content()


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1280, "height": 800}, WALL])
def test_nothing_scrolls_sideways_whatever_the_names(
    tmp_path: Path, open_page: Open, viewport: Any
) -> None:
    stage = Stage(tmp_path, small_plan(service=HOSTILE, owner=HOSTILE), engine=HOSTILE,
                  model=HOSTILE, simulation=Played("all of it"))  # fmt: skip
    stage.play(130)
    stage.play(20, slow=0.6, bad=0.02, fallbacks=5)
    with playing(stage) as url:
        for path in ("/", "/runbooks/InfersloTTFTBurn"):
            page = open_page(url, path, viewport=viewport)
            assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate(
                "window.innerWidth"
            )
            assert page.evaluate("window.harm") is None
            page.close()
    stage.close()


CONTRAST = r"""
() => {
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = (rgb) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(each).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const ratio = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.getClientRects().length || element.closest("svg")) continue;
    const color = channels(getComputedStyle(element).color).slice(0, 3);
    found.push([ratio(color, behind(element)), node.data.trim().slice(0, 60)]);
  }
  for (const drawn of document.querySelectorAll(".shape, .bar .full, .spark polyline")) {
    const style = getComputedStyle(drawn);
    const color = channels(style.stroke !== "none" ? style.stroke : style.fill).slice(0, 3);
    found.push([ratio(color, behind(drawn)) * 1.5, drawn.getAttribute("class")]);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_shapes_stand_out_from_what_is_behind_them(
    stage: Stage, open_page: Open, scheme: Any
) -> None:
    """WCAG 2.2 AA: 4.5 to 1 for text, 3 to 1 for what is drawn."""
    stage.play(20, slow=0.6, bad=0.1)
    stage.play(1, up=False)
    stage.simulation = Played("all of it")
    with playing(stage) as url:
        page = open_page(url, color_scheme=scheme)
        live(page)
        found = page.evaluate(CONTRAST)
        runbook = open_page(url, "/runbooks/InfersloTTFTBurn", color_scheme=scheme)
        found += runbook.evaluate(CONTRAST)
    expect(page.locator("#link")).to_contain_text("Connection lost")
    found += page.evaluate(CONTRAST)
    assert len(found) > 100
    assert [(round(ratio, 2), what) for ratio, what in found if ratio < 4.5] == []


def test_every_control_and_picture_has_a_name_and_the_order_is_that_of_need(
    stage: Stage, open_page: Open
) -> None:
    stage.play(20, slow=0.6, bad=0.1)
    with playing(stage) as url:
        page = open_page(url)
        live(page)
        unnamed = page.evaluate(
            "[...document.querySelectorAll('a, summary, button, svg[role=img]')]"
            ".filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label')))"
            ".map((e) => e.outerHTML)"
        )
        assert unnamed == []
        for landmark in ("banner", "main", "contentinfo", "navigation"):
            expect(page.get_by_role(landmark)).to_have_count(1)
        headings = page.get_by_role("heading", level=2).all_inner_texts()
        assert headings == [
            "Alerts", "Objectives", "Who is told", "Business health", "Engines, GPUs, host",
            "Last changes", "Not measured",
        ]  # fmt: skip
        expect(page.get_by_role("region", name="Objectives")).to_have_count(1)
        expect(page.get_by_role("table", name="Objectives").get_by_role("row")).to_have_count(5)


def test_a_phone_keeps_the_tables_for_screen_readers(stage: Stage, open_page: Open) -> None:
    with playing(stage) as url:
        page = open_page(url, viewport=PHONE)
        rows = page.get_by_role("table", name="Objectives").get_by_role("row")
        expect(rows).to_have_count(5)
        expect(page.get_by_role("rowheader", name=re.compile("first-token"))).to_have_count(1)


@pytest.mark.parametrize(
    ("viewport", "order"),
    [(PHONE, ["alerts", "objectives", "demo"]), (WALL, ["alerts", "demo", "objectives"])],
)
def test_the_faults_of_a_demo_never_stand_before_the_alerts(
    stage: Stage, open_page: Open, viewport: Any, order: list[str]
) -> None:
    stage.simulation = Played("all of it")
    with playing(stage) as url:
        page = open_page(url, viewport=viewport)
        tops = {name: page.locator(f"#{name}").bounding_box() for name in order}
    assert sorted(tops, key=lambda name: (tops[name] or {"y": -1.0})["y"]) == order


def test_it_can_be_gone_through_by_keyboard(stage: Stage, open_page: Open) -> None:
    stage.play(20, slow=0.6)
    with playing(stage) as url:
        page = open_page(url)
        live(page)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent").startswith("Runbook: ")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
