"""A simulated engine over HTTP: OpenAI's forms, at the simulated pace, and never unlabelled."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from inferslo.exporters.names import Outcome
from inferslo.sidecar.demo.faults import parse
from inferslo.sidecar.demo.live.answers import Asked, Flight, engine_app
from inferslo.sidecar.demo.live.buttons import buttons
from inferslo.sidecar.demo.live.texts import ANSWER
from inferslo.sidecar.demo.live.world import MODEL, World

START = 1_767_571_200.0
PLAIN: dict[str, Any] = {"model": MODEL, "prompt": "Hello", "max_tokens": 10}
EMPTY = parse(
    "{id: D9, name: empty, title: t, expect: [], effects: {empty_share: 1.0}}", "empty.yaml"
)
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 10}


@pytest.fixture
def world() -> World:
    world = World(START)
    world.advance(START + 30)
    return world


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    """Of engine 0, while the world goes on, faster than the clock."""
    stop = threading.Event()

    def play() -> None:
        while not stop.wait(0.005):
            world.advance(world.now + 0.1)

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield TestClient(engine_app(world, 0))
    finally:
        stop.set()
        thread.join()


def events(text: str) -> list[dict[str, Any]]:
    """Of a stream that ended properly."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


# --- the pages of the engine ---


def test_its_pages_are_those_of_a_vllm_with_a_model_called_simulated(client: TestClient) -> None:
    assert client.get("/health").status_code == 200
    assert client.get("/version").json() == {"version": "0.32.0"}
    [model] = client.get("/v1/models").json()["data"]
    assert model["id"] == MODEL
    page = client.get("/metrics").text
    assert f'vllm:num_requests_running{{engine="0",model_name="{MODEL}"}}' in page


# --- completions ---


def test_an_answer_is_in_the_form_of_completions_and_says_that_it_is_simulated(
    client: TestClient,
) -> None:
    answer = client.post("/v1/completions", json=PLAIN).json()
    assert (answer["object"], answer["model"], answer["simulated"]) == (
        "text_completion", MODEL, True,
    )  # fmt: skip
    assert answer["usage"]["completion_tokens"] == 10
    assert answer["choices"][0]["text"].split() == ANSWER.split()[:10]


def test_an_answer_of_chat_has_a_message(client: TestClient) -> None:
    answer = client.post("/v1/chat/completions", json=CHAT).json()
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"].startswith("This is simulated text")


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_stream_has_the_whole_answer_in_pieces(client: TestClient, path: str) -> None:
    body = (CHAT if "chat" in path else PLAIN) | {"stream": True, "max_tokens": 40}
    got = events(client.post(path, json=body).text)
    choices = [event["choices"][0] for event in got]
    pieces = [
        choice["delta"]["content"] if "chat" in path else choice["text"] for choice in choices
    ]
    assert len(pieces) > 2
    assert len("".join(pieces).split()) == 40
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["length"]
    assert all(event["simulated"] for event in got)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 400, "one JSON object"),
        (b"{}", 400, "prompt is missing"),
        (b'{"prompt": "a", "model": "gpt"}', 404, MODEL),
        (b'{"prompt": "a", "max_tokens": 0}', 400, "max_tokens"),
        (b'{"prompt": "a", "max_tokens": "many"}', 400, "max_tokens"),
        (b'{"prompt": "a", "max_tokens": 40000}', 400, "32768 tokens"),
        (b'"' + b"a" * (1 << 20) + b'"', 413, "bytes"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(
    client: TestClient, body: bytes, status: int, says: str
) -> None:
    answer = client.post("/v1/completions", content=body)
    assert answer.status_code == status
    assert says in answer.json()["error"]["message"]
    assert answer.json()["simulated"] is True


def test_an_engine_that_sends_nothing_says_200_and_has_no_text(
    world: World, client: TestClient
) -> None:
    with world.locked() as fleet:
        fleet.arm(EMPTY)
        fleet.look()
    answer = client.post("/v1/completions", json=PLAIN)
    assert answer.status_code == 200
    [choice] = answer.json()["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("", "stop")
    [last] = events(client.post("/v1/completions", json={**PLAIN, "stream": True}).text)
    assert last["choices"] == [choice]


# --- the pace, by a driven clock ---


def flight(world: World, tokens: int = 50) -> Flight:
    return Flight(world, 0, Asked(20, tokens, stream=True), "default")


def test_tokens_come_at_the_simulated_pace(world: World) -> None:
    async def told() -> list[tuple[float, int]]:
        found = []
        counts = flight(world).counts()
        task = asyncio.ensure_future(anext(counts))
        for _ in range(60):
            world.advance(world.now + 0.1)
            _, now = await task
            found.append((world.now - START - 30, now))
            if now == 50:
                break
            task = asyncio.ensure_future(anext(counts))
            await asyncio.sleep(0)
        return found

    found = asyncio.run(told())
    # Some fifteen milliseconds a token, as its own histogram says: far from all at once.
    [(first, _), *_, (last, count)] = found
    assert count == 50
    assert first <= 0.3
    assert 0.5 < last < 2.0


def test_a_client_that_leaves_leaves_the_simulated_queue(world: World) -> None:
    async def leave() -> Flight:
        left = flight(world, 4000)
        counts = left.counts()
        world.advance(world.now + 1)
        await anext(counts)
        await counts.aclose()
        return left

    assert asyncio.run(leave()).outcome is Outcome.ABORTED


def test_a_hang_sends_nothing_and_what_was_asked_still_waits(world: World) -> None:
    world.arm(buttons()["engine-hang"])
    hung = flight(world)
    world.advance(world.now + 10)
    assert (hung.tokens, hung.outcome) == (0, None)
    world.recover()
    world.advance(world.now + 20)
    assert (hung.tokens, hung.outcome) == (50, Outcome.SUCCESS)


def test_first_tokens_come_late_in_an_avalanche(world: World) -> None:
    def first_token() -> float:
        asked, began = flight(world), world.now
        while not asked.tokens:
            world.advance(world.now + 0.05)
        return world.now - began

    before = first_token()
    world.arm(buttons()["queue-avalanche"])
    world.advance(world.now + 60)
    assert first_token() > 10 * before


def test_a_request_breaks_off_with_its_engine(world: World) -> None:
    lost = flight(world, 4000)
    world.advance(world.now + 1)
    world.arm(buttons()["dead-instance"])
    assert (lost.outcome, lost.broken) == (Outcome.ERROR, True)
