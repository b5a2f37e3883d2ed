"""Golden files: `pytest --update-golden` writes them anew, and the diff is the review."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Ignored in what a script starts in the background, and then in all servers that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares text, byte for byte, with the golden file of that name."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.write_bytes(text.encode())
        assert path.exists(), f"no golden file {name}: make it with pytest --update-golden"
        assert text == path.read_bytes().decode()

    return check


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """A command that is run in this process leaves its log handler, on a stream then closed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
