"""Structured logs on stderr, by the standard library; one line per state change, never per poll."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from ..exporters.reading import ErrorKind, Reading

_FIELDS = "inferslo_fields"


def fields(**values: object) -> dict[str, dict[str, object]]:
    """What a line says beside its event: log.info("listening", extra=fields(port=9400))."""
    return {_FIELDS: values}


def configure(form: str, level: str, stream: TextIO) -> None:
    """Sends every log line of this process to `stream`. form: auto, text or json."""
    as_text = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    # What uvicorn says of start and stop we say ourselves, and a line per request helps nobody.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.access").disabled = True


class TextFormatter(logging.Formatter):
    """time level event key=value …, for people."""

    def format(self, record: logging.LogRecord) -> str:
        pairs = "".join(f" {key}={_plain(value)}" for key, value in _extra(record).items())
        line = f"{_time(record)} {record.levelname.lower():<7} {record.getMessage()}{pairs}"
        return line if not record.exc_info else f"{line}\n{self.formatException(record.exc_info)}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **_extra(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class StateLog:
    """Told of every reading, logs when a source goes down, fails in a new way, or comes back."""

    def __init__(self, log: logging.Logger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._up: set[str] = set()
        self._outages: dict[str, tuple[float, set[ErrorKind]]] = {}

    def __call__(self, reading: Reading) -> None:
        with self._lock:
            if reading.error is None:
                self._succeeded(reading.source)
            else:
                self._failed(reading, reading.error)

    def _succeeded(self, source: str) -> None:
        if source in self._up:
            return
        self._up.add(source)
        if source not in self._outages:
            self._log.info("source up", extra=fields(source=source))
            return
        began, _ = self._outages.pop(source)
        down = round(self._clock() - began, 1)
        self._log.info("source up", extra=fields(source=source, down_seconds=down))

    def _failed(self, reading: Reading, kind: ErrorKind) -> None:
        self._up.discard(reading.source)
        _, kinds = self._outages.setdefault(reading.source, (self._clock(), set()))
        # A source that fails now this way, now that way, is still told of once per way.
        if kind not in kinds:
            kinds.add(kind)
            self._log.warning(
                "source down",
                extra=fields(source=reading.source, kind=str(kind), detail=reading.detail),
            )


def _extra(record: logging.LogRecord) -> dict[str, object]:
    found: dict[str, object] = getattr(record, _FIELDS, {})
    return found


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z")


def _plain(value: object) -> str:
    text = str(value)
    needs_quotes = not text or not text.isprintable() or any(c in text for c in ' "=')
    return json.dumps(text, ensure_ascii=not text.isprintable()) if needs_quotes else text
