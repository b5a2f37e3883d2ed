"""The events routes behind a real uvicorn, spoken to over a real socket."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from fastapi import FastAPI

from inferslo.sidecar.events.api import events_router
from inferslo.sidecar.events.business import Business
from inferslo.sidecar.events.journal import Journal
from inferslo.sidecar.events.model import MAX_BATCH, json_schema
from inferslo.sidecar.events.tally import Limits

EVENT = {"type": "regenerate", "app": "shop"}


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    json: Any


class Server(NamedTuple):
    port: int
    business: Business
    journal: Journal

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        if not isinstance(body, bytes | Iterator):
            body = json.dumps(body).encode()
        return self.ask("POST", path, body, headers)

    def ask(self, method: str, path: str, body: Any = None, headers: Any = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return Answer(response.status, response.headers, json.loads(response.read()))
        finally:
            connection.close()

    def total(self, family: str, *labels: str) -> float:
        found = {(point.family.name, point.labels): point.value for point in self.business.points()}
        value = found[(family, labels)]
        assert isinstance(value, float | int)
        return value


@contextmanager
def serving(app: FastAPI) -> Iterator[int]:
    # log_config=None: what uvicorn logs is then seen by caplog.
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(token: str | None = None, max_body: int = 1 << 20, **options: int) -> Server:
            journal = Journal(tmp_path / "events.db")
            business = Business(journal, Limits(label_values=100, series=1000), **options)
            stack.callback(business.close)
            app = FastAPI()
            app.include_router(events_router(business, token, max_body))
            return Server(stack.enter_context(serving(app)), business, journal)

        yield start


def test_one_event_is_accepted_then_known(serve: Serve) -> None:
    server = serve()
    event = EVENT | {"id": "a"}
    first, second = server.post("/v1/events", event), server.post("/v1/events", event)
    assert (first.status, first.json) == (200, {"status": "accepted"})
    assert (second.status, second.json) == (200, {"status": "duplicate"})
    assert server.total("inferslo_regenerations_total", "shop", "", "", "") == 1


def test_a_batch_is_answered_item_by_item(serve: Serve) -> None:
    server = serve()
    event = EVENT | {"id": "a"}
    events = [event, {"type": "agent_turn", "outcme": "success"}, event, 7, EVENT]
    answer = server.post("/v1/events:batch", {"events": events})
    assert answer.status == 207
    assert answer.json == {
        "accepted": 2,
        "duplicate": 1,
        "invalid": 2,
        "items": [
            {"index": 0, "status": "accepted"},
            {
                "index": 1,
                "status": "invalid",
                "error": "unknown key 'outcme' in agent_turn",
                "hint": "did you mean 'outcome'?",
            },
            {"index": 2, "status": "duplicate"},
            {
                "index": 3,
                "status": "invalid",
                "error": "an event is a JSON object",
                "hint": 'for example {"type": "regenerate"}',
            },
            {"index": 4, "status": "accepted"},
        ],
    }
    assert server.total("inferslo_regenerations_total", "shop", "", "", "") == 2
    assert server.total("inferslo_events_received_total", "invalid") == 2


def test_a_batch_without_faults_is_200(serve: Serve) -> None:
    server = serve()
    assert server.post("/v1/events:batch", {"events": [EVENT]}).status == 200
    empty = server.post("/v1/events:batch", {"events": []})
    assert (empty.status, empty.json["items"]) == (200, [])


def test_a_batch_takes_a_thousand_and_no_more(serve: Serve) -> None:
    server = serve()
    full = server.post("/v1/events:batch", {"events": [EVENT] * MAX_BATCH})
    over = server.post("/v1/events:batch", {"events": [EVENT] * (MAX_BATCH + 1)})
    assert (full.status, full.json["accepted"]) == (200, MAX_BATCH)
    assert (over.status, over.json["error"]) == (413, "1001 events in one batch")
    assert server.total("inferslo_regenerations_total", "shop", "", "", "") == MAX_BATCH


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/v1/events", b"", 400, "the body is not JSON: EOF"),
        ("/v1/events", b"{", 400, "the body is not JSON: EOF"),
        ("/v1/events", b'{"type": NaN}', 400, "the body is not JSON"),
        ("/v1/events", b'"\xff\xfe"', 400, "the body is not JSON"),
        ("/v1/events", b'{"app": "\\ud800"}', 400, "the body is not JSON"),
        ("/v1/events", b"[" * 100_000, 400, "the body is not JSON: recursion limit"),
        ("/v1/events", b"[]", 422, "an event is a JSON object"),
        ("/v1/events", b'{"type": "regenerate", "ap": 1}', 422, "unknown key 'ap'"),
        ("/v1/events:batch", b"[]", 422, "a batch has one key, `events`"),
        ("/v1/events:batch", b"{}", 422, "a batch has one key, `events`"),
        ("/v1/events:batch", b'{"events": [], "x": 1}', 422, "a batch has one key, `events`"),
        ("/v1/events:batch", b'{"events": {}}', 422, "`events` is not a list"),
        ("/v1/events:batch", b'{"type": "regenerate"}', 422, "a batch has one key, `events`"),
    ],
)
def test_wrong_input_is_told_what_and_what_to_do(
    serve: Serve, path: str, body: bytes, status: int, error: str
) -> None:
    answer = serve().post(path, body)
    assert answer.status == status
    assert answer.json.keys() == {"error", "hint"}
    assert answer.json["error"].startswith(error)
    assert answer.json["hint"]


def test_one_invalid_event_is_counted(serve: Serve) -> None:
    server = serve()
    server.post("/v1/events", {"type": "nothing"})
    assert server.total("inferslo_events_received_total", "invalid") == 1


def test_a_compressed_body_is_told_apart_from_broken_json(serve: Serve) -> None:
    answer = serve().post("/v1/events", b"\x1f\x8b", Content_Encoding="gzip")
    assert (answer.status, answer.json["hint"]) == (415, "send the body uncompressed")


def test_the_body_limit_holds_with_a_length_and_without(serve: Serve) -> None:
    server = serve(max_body=1000)
    body = json.dumps(EVENT).encode().ljust(1000)
    assert server.post("/v1/events", body).status == 200
    assert server.post("/v1/events", iter([body[:500], body[500:]])).status == 200
    for over in (body + b" ", iter([body, b" "])):
        answer = server.post("/v1/events", over)
        assert (answer.status, answer.json["error"]) == (413, "the body is over 1000 bytes")


def test_an_endless_body_is_cut_off_while_it_is_read(serve: Serve) -> None:
    server = serve(max_body=1000)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"7d0\r\n" + b" " * 2000 + b"\r\n")  # and no last chunk
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_client_that_leaves_mid_body_counts_nothing(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
    server.post("/v1/events", EVENT | {"id": "later"})
    assert server.total("inferslo_events_received_total", "accepted") == 1
    assert "Exception" not in caplog.text


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", "Bearer wrong", "Bearer schlüssel", "Basic s3cret", "s3cret"]
)
@pytest.mark.parametrize("path", ["/v1/events", "/v1/events:batch"])
def test_without_the_token_nothing_is_taken(
    serve: Serve, path: str, authorization: str | None
) -> None:
    server = serve(token="s3cret")
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = server.post(path, EVENT, **headers)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.json.keys() == {"error", "hint"}
    assert "s3cret" not in json.dumps(answer.json)
    assert server.total("inferslo_events_received_total", "accepted") == 0


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_with_the_token_events_are_taken(serve: Serve, scheme: str) -> None:
    answer = serve(token="s3cret").post("/v1/events", EVENT, Authorization=f"{scheme} s3cret")
    assert answer.status == 200


def test_the_token_is_asked_for_before_the_body_is_read(serve: Serve) -> None:
    server = serve(token="s3cret")
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_a_full_disk_acknowledges_nothing_and_the_retry_counts_once(serve: Serve) -> None:
    server = serve()
    event = EVENT | {"id": "a"}
    server.journal._db.execute("PRAGMA max_page_count = 1")
    long = [EVENT | {"id": str(number)} for number in range(500)]
    refused = server.post("/v1/events:batch", {"events": [event, *long]})
    assert refused.status == 503
    assert int(refused.headers["Retry-After"]) > 0
    assert "database or disk is full" in refused.json["error"]
    assert server.total("inferslo_events_received_total", "accepted") == 0
    server.journal._db.execute("PRAGMA max_page_count = 1000000")
    assert server.post("/v1/events", event).json == {"status": "accepted"}
    assert server.total("inferslo_regenerations_total", "shop", "", "", "") == 1


def test_after_close_events_are_told_to_come_again(serve: Serve) -> None:
    server = serve()
    server.business.close()
    answer = server.post("/v1/events", EVENT)
    assert (answer.status, answer.json["error"]) == (503, "the sidecar is stopping")


def test_a_slow_disk_turns_events_away_but_blocks_nothing_else(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(pending=2)
    reached, free = threading.Event(), threading.Event()
    remember = server.journal.remember

    def slow(id: str) -> bool:
        reached.set()
        free.wait()
        return remember(id)

    monkeypatch.setattr(server.journal, "remember", slow)
    answers: list[Answer] = []

    def post(id: str) -> threading.Thread:
        body = {"events": [EVENT | {"id": id}, EVENT | {"id": id + id}]}
        thread = threading.Thread(
            target=lambda: answers.append(server.post("/v1/events:batch", body))
        )
        thread.start()
        return thread

    writing = post("a")
    reached.wait()
    waiting = post("b")
    while not server.business._jobs:
        time.sleep(0.01)
    refused = server.post("/v1/events", EVENT)
    assert (refused.status, refused.json["error"]) == (429, "2 events wait for the disk")
    assert refused.headers["Retry-After"] == "1"
    assert server.ask("GET", "/v1/events/schema").status == 200
    free.set()
    for thread in (writing, waiting):
        thread.join()
    assert [answer.json["accepted"] for answer in answers] == [2, 2]


def test_the_schema_is_published(serve: Serve) -> None:
    answer = serve(token="s3cret").ask("GET", "/v1/events/schema")
    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.json == json_schema()


def test_bodies_that_stall_take_bounded_memory_and_others_are_told_to_come_again(
    serve: Serve,
) -> None:
    server = serve(max_body=1000)
    head = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(16):
            stalled = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            stalled.sendall(head + b" " * 999)

        answer = server.post("/v1/events", EVENT)
        while answer.status == 200:  # until all that was sent has come in
            answer = server.post("/v1/events", {**EVENT, "app": "x" * 60})

    assert answer.status == 429
    assert answer.headers["Retry-After"] == "1"
    while server.post("/v1/events", EVENT).status == 429:  # until the stalled ones are seen gone
        time.sleep(0.01)
