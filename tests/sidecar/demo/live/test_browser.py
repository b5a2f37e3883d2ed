"""The demo as somebody plays it: `inferslo up --demo` in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browsing import Open, live
from playwright.sync_api import expect
from starting import running

# docs/demo.md promises both of a queue avalanche within 3 minutes; a machine may be slow.
PROMISED = 180_000.0  # ms
pytestmark = pytest.mark.browser


def test_an_avalanche_is_told_with_its_reason_and_runbook_and_clears(
    tmp_path: Path, open_page: Open
) -> None:
    with running(tmp_path, "--demo") as up:
        page = open_page(up.url)
        live(page)
        expect(page.locator("body")).to_contain_text("SIMULATED")
        expect(page.get_by_role("status").first).to_contain_text(
            re.compile("All .* objectives are met"), timeout=PROMISED
        )

        page.get_by_role("button", name="Queue avalanche").click()
        told = page.locator(".alert.page").first
        expect(told).to_contain_text("Tier 1", timeout=PROMISED)
        expect(page.locator(".alert.page", has_text="admitted")).to_contain_text(
            "queue wait", timeout=PROMISED
        )
        expect(page.locator("#demo [aria-pressed=true]")).to_contain_text("avalanche")
        runbook = told.get_by_role("link", name=re.compile("^Runbook: ")).first
        runbook.click()
        expect(page.get_by_role("heading", name="First three checks")).to_be_visible()

        page.go_back()
        live(page)
        page.get_by_role("button", name="Recover").click()
        expect(page.locator(".alert.page")).to_have_count(0, timeout=PROMISED)
