"""A browser for whatever has a page; and an end to the histories that tests judge by."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import browser, open_page

from inferslo.sidecar.judge.history import History

__all__ = ["browser", "open_page"]


@pytest.fixture(autouse=True)
def _histories_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A judge has no end of its own; from Python 3.13 on a database left open is a warning."""
    made: list[History] = []
    begin = History.__init__

    def recorded(self: History, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(History, "__init__", recorded)
    yield
    for history in made:
        with contextlib.suppress(sqlite3.ProgrammingError):  # the test has closed it
            history.close()
