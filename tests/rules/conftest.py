"""Marks the tests of which promtool is the judge: minutes of work, of which Python does little."""

from __future__ import annotations

import pytest

# They make files, or see what is made; promtool hardly has a part in them.
_LIGHT = ("test_build", "test_formats", "test_promql", "test_runbooks", "alertmanager")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/rules/" in item.nodeid and not any(name in item.nodeid for name in _LIGHT):
            item.add_marker(pytest.mark.promtool)
