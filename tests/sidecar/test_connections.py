"""How the sidecar treats connections: no delayed answers, no patience with the silent."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from inferslo.sidecar import impatience, process
from inferslo.sidecar.impatience import ImpatientProtocol
from inferslo.sidecar.settings.model import Settings

SHORT = 0.2


def test_accepted_connections_do_not_wait_to_fill_a_segment() -> None:
    """Else each answer on a kept connection waits some 40 ms for the peer's delayed ACK."""
    found = asyncio.run(_nodelay_of_an_accepted_connection())

    assert found == 1


async def _nodelay_of_an_accepted_connection() -> int:
    accepted: asyncio.Queue[int] = asyncio.Queue()

    async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        await accepted.put(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()
        await writer.wait_closed()

    with process._listening(Settings(listen="127.0.0.1:0")) as listener:
        server = await asyncio.start_server(look, sock=listener)
        _, writer = await asyncio.open_connection(*listener.getsockname())
        found = await asyncio.wait_for(accepted.get(), 10)
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()
    return found


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A uvicorn with our protocol and a short patience."""
    monkeypatch.setattr(impatience, "REQUEST_SECONDS", SHORT)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(3 * SHORT)  # an answer may take longer than a request's head may
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    config = uvicorn.Config(app, http=ImpatientProtocol, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()
        server.should_exit = True
        thread.join()


WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        WHOLE + b"G",
    ],
    ids=["silent", "half a head", "half a body", "half a second request"],
)
def test_who_sends_no_whole_request_is_hung_up_on(address: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(sent)

        answer = b"".join(iter(lambda: connection.recv(1000), b""))

    assert answer.count(b"200 OK") == sent.count(WHOLE)


def test_one_connection_too_many_costs_one_that_waits(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(impatience, "REQUEST_SECONDS", 60.0)
    monkeypatch.setattr(impatience, "MAX_CONNECTIONS", 3)
    silent = [socket.create_connection(address, timeout=20) for _ in range(3)]

    with httpx.Client(base_url="http://{}:{}".format(*address)) as client:
        assert client.get("/").text == "ok"

    for connection in silent:
        connection.settimeout(0.1)
    hung_up = [connection for connection in silent if _is_hung_up(connection)]
    assert len(hung_up) == 1
    for connection in silent:
        connection.close()


def _is_hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except TimeoutError:
        return False


def test_who_asked_gets_the_answer_and_keeps_the_connection(address: tuple[str, int]) -> None:
    with httpx.Client(base_url="http://{}:{}".format(*address)) as client:
        assert client.get("/").text == "ok"
        time.sleep(2 * SHORT)
        assert client.get("/").text == "ok"
