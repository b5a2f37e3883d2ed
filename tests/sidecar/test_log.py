"""Logs: one line per state change, never one per poll; text for people, JSON for machines."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from inferslo.exporters.reading import ErrorKind, Observation, Reading
from inferslo.sidecar.log import StateLog, configure, fields


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    root, access = logging.getLogger(), logging.getLogger("uvicorn.access")
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    access.disabled = False
    logging.getLogger("uvicorn.error").setLevel(logging.NOTSET)


@pytest.fixture
def log() -> logging.Logger:
    return logging.getLogger("test of logs")


def up(source: str = "a") -> Reading:
    return Reading(source, 0.0, 0.1, Observation(()))


def down(kind: ErrorKind = ErrorKind.REFUSED, source: str = "a") -> Reading:
    return Reading(source, 0.0, 0.1, None, kind, "nobody listens")


def events(stream: io.StringIO) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [
        {k: v for k, v in line.items() if k not in ("time", "level", "logger")} for line in lines
    ]


def test_text_has_time_level_event_and_pairs(log: logging.Logger) -> None:
    stream = io.StringIO()
    configure("text", "info", stream)

    log.info("source %s", "up", extra=fields(source="a:1", detail='say "a" = b', empty="", n=1.5))

    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info    source up source=a:1"
        r' detail="say \\"a\\" = b" empty="" n=1.5\n',
        stream.getvalue(),
    )


def test_a_value_cannot_break_the_line(log: logging.Logger) -> None:
    stream = io.StringIO()
    configure("text", "info", stream)

    log.info("x", extra=fields(detail="a\nb\u2028c\x1b[31m"))

    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_json_is_one_object_a_line(log: logging.Logger) -> None:
    stream = io.StringIO()
    configure("json", "info", stream)

    log.warning("source down", extra=fields(source="a", kind=ErrorKind.DNS))
    try:
        raise ValueError("odd")
    except ValueError:
        log.exception("fault")

    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first["level"] == "warning"
    assert first["event"] == "source down"
    assert (first["source"], first["kind"]) == ("a", "dns")
    assert "ValueError: odd" in second["exception"]


@pytest.mark.parametrize(("stream", "is_json"), [(io.StringIO(), True), (Terminal(), False)])
def test_auto_is_text_on_a_terminal_only(
    stream: io.StringIO, is_json: bool, log: logging.Logger
) -> None:
    configure("auto", "info", stream)

    log.info("x")

    assert stream.getvalue().startswith("{") == is_json


def test_lines_below_the_level_are_left_out(log: logging.Logger) -> None:
    stream = io.StringIO()
    configure("json", "warning", stream)

    log.info("quiet")
    log.warning("loud")

    assert [event["event"] for event in events(stream)] == ["loud"]


def test_of_uvicorn_only_what_goes_wrong_is_logged() -> None:
    stream = io.StringIO()
    configure("json", "debug", stream)

    logging.getLogger("uvicorn.access").info("GET /metrics")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").error("Exception in ASGI application")

    assert [event["event"] for event in events(stream)] == ["Exception in ASGI application"]


def test_each_change_of_state_is_one_line(log: logging.Logger) -> None:
    stream, clock = io.StringIO(), Clock()
    configure("json", "info", stream)
    state = StateLog(log, clock=clock)

    for reading in (up(), up(), down(), down()):
        state(reading)
    clock.now += 62.04
    for reading in (down(), up(), up()):
        state(reading)

    assert events(stream) == [
        {"event": "source up", "source": "a"},
        {"event": "source down", "source": "a", "kind": "refused", "detail": "nobody listens"},
        {"event": "source up", "source": "a", "down_seconds": 62.0},
    ]


def test_an_outage_tells_each_kind_of_failure_once(log: logging.Logger) -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    state = StateLog(log, clock=Clock())

    for _ in range(3):
        state(down(ErrorKind.REFUSED))
        state(down(ErrorKind.TIMEOUT))
    state(up())
    state(down(ErrorKind.REFUSED))

    kinds = [event.get("kind") for event in events(stream)]
    assert kinds == ["refused", "timeout", None, "refused"]


def test_sources_are_told_apart(log: logging.Logger) -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    state = StateLog(log, clock=Clock())

    state(down(source="a"))
    state(up("b"))
    state(down(source="a"))

    assert [(e["event"], e["source"]) for e in events(stream)] == [
        ("source down", "a"),
        ("source up", "b"),
    ]
