"""Reports business events to the sidecar from inside an application.

    events = EventClient("http://127.0.0.1:9400")
    events.agent_turn("success", app="checkout")

It imports the standard library only, so this one file can also be copied. No method raises
because of the sidecar, of the network or of the values it is given: what cannot be delivered is
counted in `dropped`. Each event carries an id, so a retry is never counted twice.
"""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import logging
import math
import os
import random
import sys
import threading
import time
import urllib.parse
import weakref
from collections import deque
from typing import Any, NamedTuple, TypedDict, Unpack

_log = logging.getLogger(__name__)

_HTTP_TIMEOUT = 5.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 30.0
_LONGEST_RETRY_AFTER = 300.0
_LAST_SECONDS = 2.0  # to send what is queued when nobody has called `close`
_MAX_BATCH = 1000
_MAX_ANSWER = 4 << 20
# The fault is in the body, so sending it again cannot help. All else may pass: a token still to
# be rolled out, a sidecar still to be updated, a full disk.
_HOPELESS = frozenset({400, 413, 415, 422})
# One event may be to blame for the whole body: too long, nested too deep, half a character.
_DIVISIBLE = frozenset({400, 413})


class Common(TypedDict, total=False):
    """What every event may carry; see docs/events.md. `id` is made if it is absent or None."""

    app: str | None
    model_name: str | None
    tenant: str | None
    sla_class: str | None
    id: str | None
    time: str | float | None


class _Answer(NamedTuple):
    """status: 0 if none came; text then says why."""

    status: int
    retry_after: float
    text: str

    @property
    def fault(self) -> str:
        return f"HTTP {self.status}: {self.text[:300]!r}" if self.status else self.text


class EventClient:
    """Queues events and sends them in batches from a background thread. Thread-safe; a forked
    child starts with an empty queue and zero counts of its own. One that is let go without `close`
    sends for at most 2 s what is queued, as all do at exit.

    url: of the sidecar; queue_size: events kept while the sidecar cannot be reached, newer ones
    are dropped; batch_size: at most 1000; flush_seconds: the longest that an event waits for
    its batch to fill.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        queue_size: int = 10_000,
        batch_size: int = 500,
        flush_seconds: float = 1.0,
    ) -> None:
        batch_size = max(1, min(batch_size, _MAX_BATCH))
        self._sender = _Sender(url, token, queue_size, batch_size, flush_seconds)
        # Not at exit: `_close_all` is for that.
        weakref.finalize(self, self._sender.expire, _LAST_SECONDS).atexit = False

    @property
    def sent(self) -> int:
        """Events that the sidecar has acknowledged."""
        return self._sender.sent

    @property
    def dropped(self) -> int:
        """Events lost: queue full, not JSON, refused, or not acknowledged when `close` gave up."""
        return self._sender.dropped

    def agent_turn(self, outcome: str, **common: Unpack[Common]) -> None:
        """outcome: success, timeout, format_error, tool_error, aborted, error."""
        self._put("agent_turn", common, outcome=outcome)

    def session(self, state: str, **common: Unpack[Common]) -> None:
        """state: started, completed, interrupted, escalated."""
        self._put("session", common, state=state)

    def fallback(
        self,
        from_model: str,
        to_model: str,
        reason: str,
        level: int = 1,
        **common: Unpack[Common],
    ) -> None:
        """level: depth of degradation, 1 to 10."""
        self._put(
            "fallback", common, from_model=from_model, to_model=to_model, reason=reason, level=level
        )

    def regenerate(self, **common: Unpack[Common]) -> None:
        self._put("regenerate", common)

    def schema_failure(self, schema: str, **common: Unpack[Common]) -> None:
        self._put("schema_failure", common, schema=schema)

    def quality_check(self, check: str, passed: bool, **common: Unpack[Common]) -> None:
        self._put("quality_check", common, check=check, passed=passed)

    def close(self, timeout: float = 5.0) -> None:
        """Sends what is queued, for at most `timeout` seconds; the rest counts as dropped."""
        self._sender.close(timeout)

    def _put(self, type: str, common: Common, **own: object) -> None:
        if sys.is_finalizing():
            return  # a finaliser calls; the lock may be with a thread that will never run again
        try:
            event: dict[str, Any] = {**common, **own, "type": type}
            if event.get("id") is None:
                # Not a counter: forked children would go on from the same number.
                event["id"] = os.urandom(16).hex()
            # Encoded here, so that the caller may change its values afterwards.
            self._sender.put(json.dumps(event, allow_nan=False))
        except Exception as error:  # noqa: BLE001 - the application must not fail for a counter
            self._sender.drop(1, f"not JSON: {_told(error)}")


class _Sender:
    """Queue and thread of a client. Apart from it, because the thread would keep the client alive
    after the application has let it go."""

    def __init__(
        self, url: str, token: str | None, queue_size: int, batch_size: int, flush_seconds: float
    ) -> None:
        self._url = url
        self._token = token
        self._queue_size = queue_size
        self._batch_size = batch_size
        self._flush_seconds = flush_seconds
        self._start_over()
        if hasattr(os, "register_at_fork"):
            self._register_at_fork()

    def _register_at_fork(self) -> None:
        # Weak: what is registered there stays until the process ends.
        reference = weakref.WeakMethod(self._start_over)

        def in_child() -> None:
            if (start_over := reference()) is not None:
                start_over()

        os.register_at_fork(after_in_child=in_child)

    def _start_over(self) -> None:
        # Reentrant, because a signal handler or a finaliser may report an event at any moment.
        self._changed = threading.Condition(threading.RLock())
        self._queue: deque[str] = deque()
        self._thread: threading.Thread | None = None
        self._closed_at: float | None = None  # monotonic time at which to give up
        self._fault: str | None = None
        self.sent = 0
        self.dropped = 0
        self._in_hand = 0  # events of the batch that the thread is delivering
        _running.discard(self)

    def put(self, event: str) -> None:
        with self._changed:
            if self._closed_at is not None:
                return self.drop(1, "closed")
            if len(self._queue) >= self._queue_size:
                return self.drop(1, "queue full")
            if self._thread is None:
                self._start()
            self._queue.append(event)
            if len(self._queue) in (1, self._batch_size):
                self._changed.notify_all()
        return None

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="inferslo-events", daemon=True)
        if self._thread is not None:
            return  # a signal handler came first; none can run between this test and the next line
        self._thread = thread
        _running.add(self)
        try:
            thread.start()
        except RuntimeError:  # no more threads can be had; the next event tries again
            self._thread = None
            _running.discard(self)
            raise

    def expire(self, timeout: float) -> None:
        """Takes no more events; the thread sends what is queued, for at most `timeout` seconds."""
        with self._changed:
            # Never later than before: what `close` has counted as dropped is not tried again.
            self._closed_at = min(self._closed_at or math.inf, time.monotonic() + timeout)
            self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Waits at most `timeout` seconds until all is sent; the rest counts as dropped."""
        self.expire(timeout)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        self._give_up()

    def _give_up(self) -> None:
        with self._changed:
            self.drop(len(self._queue) + self._in_hand, "closed")
            self._queue.clear()
            self._in_hand = 0

    def drop(self, count: int, reason: str) -> None:
        with self._changed:
            before, self.dropped = self.dropped, self.dropped + count
        # One line at 1, 2, 4, 8, … so that a lasting fault does not flood the log.
        if self.dropped.bit_length() > before.bit_length():
            _log.warning("%d events dropped so far, the last: %s", self.dropped, reason)

    def _run(self) -> None:
        while batch := self._take():
            self._deliver(batch)
        _running.discard(self)

    def _take(self) -> list[str]:
        """The next batch; empty once closed and drained."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed_at is not None)
            self._changed.wait_for(
                lambda: len(self._queue) >= self._batch_size or self._closed_at is not None,
                self._flush_seconds,
            )
            if self._closed_at is not None and time.monotonic() >= self._closed_at:
                self._give_up()
            self._in_hand = min(len(self._queue), self._batch_size)
            return [self._queue.popleft() for _ in range(self._in_hand)]

    def _deliver(self, batch: list[str]) -> None:
        """Tries until the sidecar has taken or refused the batch, or the time to close is up."""
        pause = _FIRST_PAUSE
        while True:
            answer = self._post(batch)
            if answer.status in _DIVISIBLE and len(batch) > 1:
                middle = len(batch) // 2
                self._deliver(batch[:middle])
                return self._deliver(batch[middle:])
            if answer.status in _HOPELESS:
                return self._settle(0, len(batch), answer.fault)
            if answer.status in (200, 207) and self._understood(len(batch), answer.text):
                return self._note(None)
            self._note(answer.fault)
            # Random, so that many applications do not all come back at once.
            pause = min(2 * pause, _LONGEST_PAUSE) * random.uniform(0.7, 1.0)  # noqa: S311
            if not self._pause(max(pause, answer.retry_after)):
                return self._settle(0, len(batch), "closed")

    def _post(self, batch: list[str]) -> _Answer:
        body = f'{{"events":[{",".join(batch)}]}}'.encode()
        headers = {"Content-Type": "application/json"}
        try:
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
            connection, path = _connection(self._url)
            with contextlib.closing(connection):
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                text = response.read(_MAX_ANSWER).decode(errors="replace")
                return _Answer(response.status, _seconds(response.headers["Retry-After"]), text)
        except Exception as error:  # noqa: BLE001 - the thread must outlive any fault
            return _Answer(0, 0.0, _told(error))

    def _understood(self, size: int, text: str) -> bool:
        """Counts what became of a batch; False if the answer is not one of a sidecar."""
        try:
            answer = json.loads(text)
            sent, invalid = answer["accepted"] + answer["duplicate"], answer["invalid"]
            reason = next((item["error"] for item in answer["items"] if "error" in item), "")
            if sent + invalid != size:
                return False
        except Exception:  # noqa: BLE001 - the thread must outlive any answer
            return False
        self._settle(sent, invalid, f"refused: {reason}")
        return True

    def _settle(self, sent: int, dropped: int, reason: str) -> None:
        """Counts the end of events in hand, unless `close` has given them up already."""
        with self._changed:
            if self._in_hand:
                self._in_hand -= sent + dropped
                self.sent += sent
                self.drop(dropped, reason)

    def _pause(self, seconds: float) -> bool:
        """Waits, or until close is called; False once its time is up."""
        with self._changed:
            if self._closed_at is None:
                self._changed.wait_for(lambda: self._closed_at is not None, seconds)
                return True
            left = self._closed_at - time.monotonic()
            self._changed.wait(max(0.0, min(seconds, left)))
            return left > 0

    def _note(self, fault: str | None) -> None:
        if fault and not self._fault:
            _log.warning("events cannot be sent to %s, trying again: %s", self._url, fault)
        elif self._fault and not fault:
            _log.info("events are sent to %s again", self._url)
        self._fault = fault


_running: set[_Sender] = set()


@atexit.register
def _close_all() -> None:
    # All are told first, so that many clients together take no longer than one.
    give_up = time.monotonic() + _LAST_SECONDS
    senders = list(_running)
    for sender in senders:
        sender.expire(_LAST_SECONDS)
    for sender in senders:
        sender.close(max(0.0, give_up - time.monotonic()))


def _connection(url: str) -> tuple[http.client.HTTPConnection, str]:
    """A connection and the path to post to. Not urllib's opener, which would obey proxies."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not like http://127.0.0.1:9400")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=_HTTP_TIMEOUT)
    return connection, f"{parts.path.rstrip('/')}/v1/events:batch"


def _seconds(retry_after: str | None) -> float:
    """The header as seconds; its other form, a date, is not one that the sidecar sends."""
    try:
        return min(max(float(retry_after or 0), 0.0), _LONGEST_RETRY_AFTER)
    except ValueError:
        return 0.0


def _told(error: Exception) -> str:
    """In words, and short; an exception of the application's own values may fail even at that."""
    try:
        return repr(error)[:300]
    except Exception:  # noqa: BLE001 - see above
        return type(error).__name__
