"""The client against a scripted server, which is a fake, and against a real sidecar."""

import gc
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from e2e.sidecar import read, sidecar

from inferslo.sidecar.client import EventClient

DEAD = "http://127.0.0.1:1"

Reply = tuple[int, dict[str, str], bytes]
Script = Callable[[list[dict[str, Any]]], Reply]


def taken(events: list[dict[str, Any]], invalid: int = 0) -> Reply:
    items = [{"error": "bad"}] * invalid
    counts = {"accepted": len(events) - invalid, "duplicate": 0, "invalid": invalid}
    return 207 if invalid else 200, {}, json.dumps(counts | {"items": items}).encode()


class FakeSidecar:
    """Answers each batch with the next step of its script, then takes all; keeps what it was
    sent and when."""

    def __init__(self, *script: Script) -> None:
        self.script = list(script)
        self.batches: list[list[dict[str, Any]]] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Reply:
        events = json.loads(body)["events"]
        self.times.append(time.monotonic())
        self.paths.append(path)
        self.headers.append(headers)
        self.batches.append(events)
        return self.script.pop(0)(events) if self.script else taken(events)

    @contextmanager
    def serving(self) -> Iterator[str]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, text = fake.answer(self.path, dict(self.headers), body)
                if status == 0:
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@contextmanager
def client_of(url: str, flush_seconds: float = 0.01, **options: Any) -> Iterator[EventClient]:
    client = EventClient(url, flush_seconds=flush_seconds, **options)
    try:
        yield client
    finally:
        client.close(0)


def until(condition: Callable[[], bool]) -> None:
    """A hang fails by pytest's timeout or here, whichever is first."""
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def status(code: int, **headers: str) -> Script:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (code, named, b'{"error": "no", "hint": "no"}')


def test_every_method_sends_its_event() -> None:
    fake = FakeSidecar()
    with fake.serving() as url, client_of(url) as client:
        client.agent_turn("success", app="shop", model_name="m", tenant="t", sla_class="S")
        client.session("escalated")
        client.fallback("big", "small", "overload", 2, id="mine")
        client.regenerate(time="2026-01-31T12:00:00Z")
        client.schema_failure("order")
        client.quality_check("negation", False)
        client.close()
    (batch,) = fake.batches
    assert batch[2].pop("id") == "mine"
    ids = {event.pop("id") for event in batch if "id" in event}
    assert len(ids) == 5
    assert batch == [
        {
            "type": "agent_turn",
            "outcome": "success",
            "app": "shop",
            "model_name": "m",
            "tenant": "t",
            "sla_class": "S",
        },
        {"type": "session", "state": "escalated"},
        {
            "type": "fallback",
            "from_model": "big",
            "to_model": "small",
            "reason": "overload",
            "level": 2,
        },
        {"type": "regenerate", "time": "2026-01-31T12:00:00Z"},
        {"type": "schema_failure", "schema": "order"},
        {"type": "quality_check", "check": "negation", "passed": False},
    ]
    assert (client.sent, client.dropped) == (6, 0)


def test_an_id_of_none_is_made_like_one_that_is_absent() -> None:
    fake = FakeSidecar(status(503))
    with fake.serving() as url, client_of(url, flush_seconds=60) as client:
        client.regenerate(id=None)
        client.regenerate(id=None)
        client.close()
    first, again = ([event["id"] for event in batch] for batch in fake.batches)
    assert first == again
    assert None not in first
    assert len(set(first)) == 2


def test_token_and_path_of_the_url_are_used() -> None:
    fake = FakeSidecar()
    with fake.serving() as url, client_of(f"{url}/side/", token="s3cret") as client:
        client.regenerate()
        client.close()
    assert fake.paths == ["/side/v1/events:batch"]
    assert fake.headers[0]["Authorization"] == "Bearer s3cret"


def test_events_are_sent_in_batches_of_the_given_size() -> None:
    fake = FakeSidecar()
    with fake.serving() as url, client_of(url, batch_size=10, flush_seconds=60) as client:
        for _ in range(25):
            client.regenerate()
        until(lambda: client.sent == 20)
        client.close()
    assert [len(batch) for batch in fake.batches] == [10, 10, 5]


@pytest.mark.parametrize("failure", [status(503), status(500), status(401), status(404), status(0)])
def test_a_failed_batch_is_sent_again_with_the_same_ids(failure: Script) -> None:
    fake = FakeSidecar(failure, failure)
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        until(lambda: client.sent == 1)
    assert len(fake.batches) == 3
    assert fake.batches[0] == fake.batches[1] == fake.batches[2]
    assert client.dropped == 0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>welcome</html>",
        b"\xff",
        b"[]",
        b"{}",
        b'{"accepted": 9, "duplicate": 0, "invalid": 0, "items": []}',
        b'{"accepted": [], "duplicate": [], "invalid": 1, "items": []}',
        b"[" * 100_000,
    ],
)
def test_an_answer_that_is_not_of_a_sidecar_acknowledges_nothing(text: bytes) -> None:
    fake = FakeSidecar(lambda _: (200, {}, text))
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        until(lambda: client.sent == 1)
    assert len(fake.batches) == 2


def test_retry_after_is_honoured() -> None:
    fake = FakeSidecar(status(503, Retry_After="1"))
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        until(lambda: client.sent == 1)
    assert fake.times[1] - fake.times[0] >= 1.0  # a lower bound, whatever the machine's speed


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2026 07:28:00 GMT", "-5", "nan", "soon"])
def test_a_strange_retry_after_falls_back_to_our_own_pause(value: str) -> None:
    fake = FakeSidecar(status(503, Retry_After=value))
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        until(lambda: client.sent == 1)


def test_refused_items_are_dropped_and_the_rest_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeSidecar(lambda events: taken(events, invalid=1))
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        client.agent_turn("sucess")
        client.close()
    assert (client.sent, client.dropped, len(fake.batches)) == (1, 1, 1)
    assert "1 events dropped so far, the last: refused: bad" in caplog.text


@pytest.mark.parametrize("code", [400, 415, 422])
def test_a_batch_that_can_never_be_taken_is_dropped_at_once(code: int) -> None:
    fake = FakeSidecar(status(code))
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        until(lambda: client.dropped == 1)
        client.regenerate()
        until(lambda: client.sent == 1)
    assert len(fake.batches) == 2


def test_a_batch_that_is_too_large_is_halved() -> None:
    def at_most_two(events: list[dict[str, Any]]) -> Reply:
        large = len(events) > 2 or any(event.get("app") == "long" for event in events)
        return (413, {}, b"") if large else taken(events)

    fake = FakeSidecar(*[at_most_two] * 20)
    with fake.serving() as url, client_of(url, flush_seconds=0.2) as client:
        for app in ("a", "b", "long", "c", "d"):
            client.regenerate(app=app)
        until(lambda: client.sent + client.dropped == 5)
    assert (client.sent, client.dropped) == (4, 1)


def test_an_event_that_spoils_its_batch_takes_no_other_with_it(tmp_path: Path) -> None:
    deep: Any = "bottom"
    for _ in range(250):
        deep = [deep]
    spoilers: list[Any] = ["caf\udce9.txt", deep, "long" * 500_000]
    with (
        sidecar(tmp_path, flags=("--gpu", "off", "--host", "off")) as server,
        client_of(server.url, flush_seconds=60) as client,
    ):
        for spoiler in spoilers:
            for _ in range(10):
                client.regenerate(app="shop")
            client.regenerate(app=spoiler)
        client.close(30)
        found = read(server.url)
    assert (client.sent, client.dropped) == (30, 3)
    assert found.value("inferslo_regenerations_total") == 30


def test_a_full_queue_counts_the_drop_and_never_blocks() -> None:
    with client_of(DEAD, queue_size=3, flush_seconds=60) as client:
        for _ in range(10):
            client.regenerate()
        assert client.dropped == 7


def test_a_dead_server_is_told_once_and_close_counts_what_was_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with client_of(DEAD) as client:
        for _ in range(5):
            client.regenerate()
        until(lambda: "events cannot be sent" in caplog.text)
        client.close(0.5)
    assert (client.sent, client.dropped) == (0, 5)
    assert caplog.text.count("events cannot be sent to http://127.0.0.1:1, trying again") == 1


def test_recovery_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fake = FakeSidecar(status(503), status(503))
    with fake.serving() as url, client_of(url) as client:
        client.regenerate()
        until(lambda: client.sent == 1)
        client.regenerate()
        until(lambda: client.sent == 2)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_server_that_never_answers_does_not_hold_close() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = EventClient(f"http://127.0.0.1:{listener.getsockname()[1]}", flush_seconds=0)
        client.regenerate()
        connection, _ = listener.accept()
        with connection:
            client.regenerate()
            client.close(0.05)
            assert client._sender._thread is not None
            assert client._sender._thread.is_alive()
            assert (client.sent, client.dropped) == (0, 2)
        client._sender._thread.join()
        assert (client.sent, client.dropped) == (0, 2)


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://x", "http://", "http://h:port", "http://é\n/"]
)
def test_a_wrong_url_raises_nothing_and_is_told(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with client_of(url) as client:
        client.regenerate()
        until(lambda: "events cannot be sent" in caplog.text)
        client.close(0)
    assert client.dropped == 1


def test_values_that_cannot_be_sent_are_dropped_and_counted() -> None:
    circle: list[object] = []
    circle.append(circle)
    values: list[Any] = [object(), {1, 2}, float("nan"), circle, b"bytes", {object(): 1}]
    with client_of(DEAD) as client:
        for value in values:
            client.regenerate(app=value)
        assert client.dropped == len(values)


class UntellableError(Exception):
    def __repr__(self) -> str:
        raise self


class Hostile(dict[str, str]):
    def items(self) -> Any:
        raise UntellableError

    def __str__(self) -> str:
        raise UntellableError


def test_a_value_whose_fault_cannot_be_told_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    value: Any = Hostile(key="value")
    with client_of(DEAD) as client:
        client.regenerate(app=value)
        assert client.dropped == 1
    assert "not JSON: UntellableError" in caplog.text


def test_a_token_whose_fault_cannot_be_told_does_not_end_the_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    token: Any = Hostile()
    with client_of(DEAD, token=token) as client:
        client.regenerate()
        until(lambda: "trying again: UntellableError" in caplog.text)
        client.close(0)
    assert client.dropped == 1


def test_a_key_that_no_event_has_is_the_sidecars_to_refuse() -> None:
    fake = FakeSidecar()
    keywords: dict[str, Any] = {"ap": "shop", "type": "session"}
    with fake.serving() as url, client_of(url) as client:
        client.regenerate(**keywords)
        client.close()
    assert fake.batches[0][0]["ap"] == "shop"
    assert fake.batches[0][0]["type"] == "regenerate"


def test_later_changes_of_a_value_are_not_sent() -> None:
    fake = FakeSidecar()
    value: Any = ["before"]
    with fake.serving() as url, client_of(url) as client:
        client.regenerate(app=value)
        value[0] = "after"
        client.close()
    assert fake.batches[0][0]["app"] == ["before"]


def test_after_close_events_are_dropped() -> None:
    with client_of(DEAD) as client:
        client.close(0)
        client.regenerate()
        assert client.dropped == 1
        client.close(0)


def test_an_event_reported_while_another_is_being_queued_does_not_lock_up() -> None:
    """As from a signal handler or a finaliser, which may run at any moment."""
    with client_of(DEAD) as client, client._sender._changed:
        client.regenerate()


@pytest.mark.parametrize("step", ["__init__", "start"])
def test_a_signal_while_the_thread_is_started_starts_no_second_one(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSidecar()
    real = getattr(threading.Thread, step)
    with fake.serving() as url, client_of(url) as client:

        def interrupted(thread: threading.Thread, *given: Any, **named: Any) -> None:
            monkeypatch.undo()
            client.regenerate(app="handler")
            real(thread, *given, **named)

        monkeypatch.setattr(threading.Thread, step, interrupted)
        client.regenerate(app="main")
        client.regenerate(app="main")
        assert sum(thread.name == "inferslo-events" for thread in threading.enumerate()) == 1
        client.close()
    assert (client.sent, client.dropped) == (3, 0)


def test_an_event_that_finds_no_thread_is_dropped_and_the_next_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    fake = FakeSidecar()
    with fake.serving() as url, client_of(url) as client:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            client.regenerate()
        client.regenerate()
        client.close()
    assert (client.sent, client.dropped) == (1, 1)


def test_a_client_that_never_sent_can_be_collected() -> None:
    client = EventClient(DEAD)
    reference = weakref.ref(client)
    del client
    gc.collect()
    assert reference() is None


def test_a_client_let_go_without_close_sends_what_is_queued_and_ends_its_thread() -> None:
    fake = FakeSidecar()
    with fake.serving() as url:
        client = EventClient(url, flush_seconds=60)
        client.regenerate()
        (thread,) = (one for one in threading.enumerate() if one.name == "inferslo-events")
        del client
        gc.collect()
        until(lambda: not thread.is_alive())
    assert len(fake.batches) == 1


def test_a_client_let_go_while_nobody_listens_gives_up(caplog: pytest.LogCaptureFixture) -> None:
    client = EventClient(DEAD, flush_seconds=60, batch_size=1)
    for _ in range(3):
        client.regenerate()
    (thread,) = (one for one in threading.enumerate() if one.name == "inferslo-events")
    del client
    gc.collect()
    until(lambda: not thread.is_alive())
    assert "3 events dropped so far, the last: closed" in caplog.text


def run(code: str, url: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, url],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr
    return done.stdout


def test_importing_the_client_loads_the_standard_library_only() -> None:
    code = """
import sys
before = set(sys.modules)
import inferslo.sidecar.client
loaded = {name for name in set(sys.modules) - before}
print(sorted({name.partition(".")[0] for name in loaded} - sys.stdlib_module_names))
print(sorted(name for name in loaded if name.startswith("inferslo")))
"""
    assert run(code, "").splitlines() == [
        "['inferslo']",
        "['inferslo', 'inferslo.sidecar', 'inferslo.sidecar.client']",
    ]


def test_the_client_works_as_one_copied_file(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[2] / "sidecar" / "client.py"
    (tmp_path / "events_client.py").write_text(source.read_text())
    code = """
import sys
from events_client import EventClient
client = EventClient(sys.argv[1])
client.regenerate()
client.close()
"""
    fake = FakeSidecar()
    with fake.serving() as url:
        run(code, url, PYTHONPATH=str(tmp_path))
    assert len(fake.batches) == 1


def test_proxies_of_the_environment_are_not_obeyed() -> None:
    code = """
import sys
from inferslo.sidecar.client import EventClient
client = EventClient(sys.argv[1])
client.regenerate()
client.close()
print(client.sent)
"""
    with FakeSidecar().serving() as url:
        assert run(code, url, http_proxy=DEAD, HTTP_PROXY=DEAD) == "1\n"


def test_what_is_queued_is_sent_when_the_interpreter_exits() -> None:
    code = """
import sys
from inferslo.sidecar.client import EventClient
client = EventClient(sys.argv[1], flush_seconds=60)
client.regenerate()
"""
    fake = FakeSidecar()
    with fake.serving() as url:
        run(code, url)
    assert len(fake.batches) == 1


def test_at_exit_all_clients_have_one_deadline_together() -> None:
    """Each client's last chance to send begins before the first one's is over."""
    code = """
import atexit, sys, time
from inferslo.sidecar import client

ends = []
real = client._Sender.close
def close(sender, timeout):
    ends.append(time.monotonic() + timeout)
    real(sender, timeout)
client._Sender.close = close
clients = [client.EventClient(sys.argv[1]) for _ in range(4)]
for one in clients:
    one.regenerate()
client._close_all()
print(len(ends), max(ends) - min(ends) < 2.0, [one.dropped for one in clients])
"""
    assert run(code, DEAD) == "4 True [1, 1, 1, 1]\n"


def test_events_reported_while_the_interpreter_exits_raise_nothing() -> None:
    code = """
import atexit, sys
from inferslo.sidecar.client import EventClient

class Late:
    def __del__(self):
        used.regenerate()
        unused.regenerate()

late, used, unused = Late(), EventClient(sys.argv[1]), EventClient(sys.argv[1])
used.regenerate()
atexit.register(lambda: used.regenerate())
"""
    fake = FakeSidecar()
    with fake.serving() as url:
        run(code, url)
    assert sum(map(len, fake.batches)) == 2


def test_a_forked_child_sends_its_own_events_and_not_its_parents() -> None:
    code = """
import os, sys
from inferslo.sidecar.client import EventClient
client = EventClient(sys.argv[1], flush_seconds=60)
client.regenerate(app="parent")
with client._sender._changed:  # the lock is held at the fork, as it may be
    child = os.fork()
if not child:
    client.regenerate(app="child")
    client.close()
    print(client.sent, client.dropped, flush=True)
    os._exit(0)
os.waitpid(child, 0)
client.close()
print(client.sent, client.dropped)
"""
    fake = FakeSidecar()
    with fake.serving() as url:
        assert run(code, url).splitlines() == ["1 0", "1 0"]
    apps = Counter(event["app"] for batch in fake.batches for event in batch)
    assert apps == {"parent": 1, "child": 1}


def test_a_real_sidecar_killed_and_started_again_counts_every_event_once(tmp_path: Path) -> None:
    server = sidecar(tmp_path, flags=("--gpu", "off", "--host", "off"))
    with client_of(server.url, batch_size=20) as client:

        def report(count: int) -> None:
            for number in range(count):
                client.agent_turn("success", app="shop")
                time.sleep(0.0005 if number % 10 == 0 else 0)

        report(200)  # nobody listens yet
        for _ in range(2):
            with server:
                report(600)
                server.kill()
        report(100)
        with server:
            client.quality_check("negation", True)
            client.agent_turn("not an outcome")
            client.close(60)
            found = read(server.url)
    assert (client.sent, client.dropped) == (1501, 1)
    assert found.value("inferslo_agent_turns_total", app="shop", outcome="success") == 1500
    assert found.value("inferslo_agent_turns_total") == 1500
    assert found.value("inferslo_quality_checks_total", check="negation", result="passed") == 1
