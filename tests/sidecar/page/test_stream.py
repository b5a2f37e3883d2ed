"""GET /v1/stream: only what changed, to a bounded number of listeners, until the process ends."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import served
from stage import Stage

from inferslo.sidecar.page.document import Part
from inferslo.sidecar.page.html import Html
from inferslo.sidecar.page.stream import HEARTBEAT, MOST_LISTENERS, Live

ONE, TWO = Part("one", Html("<p>1</p>")), Part("two", Html("<p>2</p>"))


def parsed(text: str) -> list[tuple[str, Any]]:
    """(event, data) of each message."""
    messages = [message.split("\n") for message in text.strip().split("\n\n")]
    return [
        (event.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for event, data in messages
    ]


class Script:
    """The parts of each tick, and the time, which goes on by a tick of a second; then it stops."""

    def __init__(self, *ticks: Sequence[Part]) -> None:
        self.ticks = list(ticks)
        self.made = 0
        self.time = 0.0

    def make(self) -> Sequence[Part]:
        self.made += 1
        self.time += 1
        return self.ticks[min(self.made, len(self.ticks)) - 1]

    def stopping(self) -> bool:
        return self.made >= len(self.ticks)

    def live(self) -> Live:
        return Live(
            self.make, "edition", stopping=self.stopping,
            tick=0.0, clock=lambda: self.time, wall=lambda: 1e9,
        )  # fmt: skip


async def _gathered(events: AsyncIterator[str]) -> list[tuple[str, Any]]:
    return [message async for text in events for message in parsed(text)]


def gathered(script: Script) -> list[tuple[str, Any]]:
    return asyncio.run(_gathered(script.live().events()))


def ids(messages: Sequence[tuple[str, Any]]) -> list[str]:
    return [data["id"] if event == "part" else event for event, data in messages]


def test_all_parts_at_first_then_only_those_that_changed() -> None:
    other = Part("two", Html("<p>3</p>"))
    messages = gathered(Script((ONE, TWO), (ONE, TWO), (ONE, other), (ONE, other)))
    assert ids(messages) == ["hello", "one", "two", "now", "two", "now"]
    assert messages[0][1] == {"edition": "edition"}
    assert messages[4][1] == {"id": "two", "version": other.version, "html": "<p>3</p>"}
    assert messages[-1] == ("now", 1e9)


def test_it_speaks_now_and_then_although_nothing_changes() -> None:
    beats = 3
    messages = gathered(Script(*[(ONE,)] * (1 + int(beats * HEARTBEAT))))
    assert ids(messages) == ["hello", "one", *["now"] * (1 + beats)]


def test_markup_with_line_ends_stays_one_message() -> None:
    hostile = Part("one", Html("a\n\nevent: part\ndata: {}\n\n"))
    messages = gathered(Script((hostile,)))
    assert ids(messages) == ["hello", "one", "now"]
    assert messages[1][1]["html"] == hostile.html


def test_the_parts_are_made_once_for_all_listeners() -> None:
    script = Script(*[(ONE,)] * 5)
    live = Live(script.make, "e", stopping=script.stopping, tick=0.01, clock=lambda: 0.0)

    async def listen() -> None:
        everyone = [live.events() for _ in range(10)]
        for each in everyone:
            await anext(each)
            await anext(each)

    asyncio.run(listen())
    assert script.made == 1


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Stage, str]]:
    stage = Stage(tmp_path)
    stage.play(1)

    def stop() -> None:
        stage.stopping = True

    with served(stage.app(), stop) as url:
        yield stage, url


def listening(url: str) -> AbstractContextManager[httpx.Response]:
    return httpx.stream("GET", f"{url}/v1/stream", timeout=30)


def first_events(lines: Iterator[str]) -> list[str]:
    """The names of events until the first `now`. A generator that is dropped ends the answer."""
    found: list[str] = []
    while found[-1:] != ["now"]:
        line = next(lines)
        if line.startswith("event: "):
            found.append(line.removeprefix("event: "))
    return found


def test_one_listener_too_many_is_refused_and_one_that_leaves_makes_room(
    stage: tuple[Stage, str],
) -> None:
    _, url = stage
    with ExitStack() as listeners:
        everyone = [
            listeners.enter_context(listening(url)).iter_lines() for _ in range(MOST_LISTENERS)
        ]
        for each in everyone:
            assert first_events(each)[0] == "hello"
        refused = httpx.get(f"{url}/v1/stream")
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert "close a page" in refused.text
        assert httpx.get(f"{url}/healthz").status_code == 200  # nobody else is kept out
    _until_answered(url)


def _until_answered(url: str) -> None:
    for _ in range(200):
        time.sleep(0.05)
        with listening(url) as response:
            if response.status_code == 200:
                return
    raise AssertionError("the listeners that left still count")


def test_streams_end_when_the_process_is_to_end(stage: tuple[Stage, str]) -> None:
    played, url = stage
    with listening(url) as response:
        lines = response.iter_lines()
        first_events(lines)
        played.stopping = True
        assert "event: hello" not in list(lines)  # which comes to its end


def test_a_listener_that_does_not_read_holds_up_nobody(stage: tuple[Stage, str]) -> None:
    played, url = stage
    with listening(url):
        for _ in range(5):
            played.play(1)
            with listening(url) as other:
                assert "part" in first_events(other.iter_lines())


def test_the_stream_is_not_gathered_or_kept_by_proxies(stage: tuple[Stage, str]) -> None:
    _, url = stage
    with listening(url) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
