"""A real Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
PATIENCE = 30_000.0  # ms
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium as root, as in a container, has no sandbox of its own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens an address. What the browser complains of, or asks another host for, fails the test."""
    contexts, faults = [], []

    def open_page(url: str, path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()

        def asked(address: str) -> None:
            if not address.startswith(url):
                faults.append(f"asked for {address}")

        page.on("request", lambda request: asked(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.goto(url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # That the server went away is what some tests do.
    assert [fault for fault in faults if "net::ERR" not in fault] == []


def live(page: Page) -> None:
    page.wait_for_selector("body[data-link=live]")
