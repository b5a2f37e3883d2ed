"""A real server is killed with SIGKILL in mid-load, again and again."""

import http.client
import json
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("events_server.py")
REGENERATIONS = "inferslo_regenerations_total{shop,,,}"
ACCEPTED = "inferslo_events_received_total{accepted}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with closing(connection):
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())


@contextmanager
def running(port: int, journal: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server, from the first answer on; SIGKILL at the end."""
    process = subprocess.Popen([sys.executable, str(SERVER), str(port), str(journal)])
    try:
        while True:
            assert process.poll() is None, "the server did not start"
            try:
                ask(port, "GET", "/totals")
                break
            except OSError:
                time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def regenerate(id: str) -> dict[str, str]:
    return {"type": "regenerate", "app": "shop", "id": id}


class Load:
    """Posts events one by one and in batches until the server is gone."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self.observed = 0
        self.doomed: subprocess.Popen[bytes] | None = None

    def run(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        """Kills at the first acknowledgement after `seconds`, when one given too early would
        not be on disk yet."""
        self.doomed = None
        threads = [threading.Thread(target=self._post, args=(size,)) for size in (1, 1, 1, 40)]
        threads.append(threading.Thread(target=self._scrape))
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.doomed = process
        for thread in threads:
            thread.join()

    def _post(self, size: int) -> None:
        while True:
            ids = {uuid.uuid4().hex for _ in range(size)}
            self.sent |= ids
            try:
                events = [regenerate(id) for id in ids]
                if size == 1:
                    status, answer = ask(self.port, "POST", "/v1/events", events[0])
                else:
                    status, answer = ask(self.port, "POST", "/v1/events:batch", {"events": events})
            except (OSError, http.client.HTTPException, ValueError):
                return
            if self.doomed:
                self.doomed.kill()
            assert status == 200, answer
            self.acknowledged |= ids

    def _scrape(self) -> None:
        while True:
            try:
                _, totals = ask(self.port, "GET", "/totals")
            except (OSError, http.client.HTTPException, ValueError):
                return
            found = totals.get(REGENERATIONS, 0)
            assert found >= self.observed
            self.observed = found


def test_kill_loses_no_acknowledged_event_and_counts_none_twice(tmp_path: Path) -> None:
    port, journal = free_port(), tmp_path / "events.db"
    load = Load(port)
    for _ in range(6):
        with running(port, journal) as process:
            total = ask(port, "GET", "/totals")[1].get(REGENERATIONS, 0)
            assert total >= load.observed
            assert len(load.acknowledged) <= total <= len(load.sent)
            load.run(process, random.uniform(0.2, 1.2))
    assert len(load.acknowledged) > 100, "the load was too light to prove anything"

    with running(port, journal):
        total = ask(port, "GET", "/totals")[1][REGENERATIONS]
        assert len(load.acknowledged) <= total <= len(load.sent)
        statuses = dict(repost(port, load.sent))
        assert {statuses[id] for id in load.acknowledged} == {"duplicate"}
        # What was in flight at a kill may have been counted or not, but the id tells which.
        assert total == sum(status == "duplicate" for status in statuses.values())
        totals = ask(port, "GET", "/totals")[1]
        assert totals[REGENERATIONS] == totals[ACCEPTED] == len(load.sent)


def repost(port: int, ids: set[str]) -> Iterator[tuple[str, str]]:
    ordered = sorted(ids)
    for start in range(0, len(ordered), 500):
        part = ordered[start : start + 500]
        body = {"events": [regenerate(id) for id in part]}
        _, answer = ask(port, "POST", "/v1/events:batch", body)
        yield from zip(part, (item["status"] for item in answer["items"]), strict=True)
