"""A real sidecar is killed with SIGKILL in mid-load, again and again."""

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
from e2e.processes import Server
from e2e.sidecar import read, sidecar

COUNTERS = ("inferslo_regenerations_total", "inferslo_events_received_total")


def post(netloc: str, path: str, body: object) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection(netloc, timeout=30)) as connection:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def counters(url: str) -> dict[str, float]:
    """By family and value of `result`, where it has one; what is not there yet is not in it."""
    return {
        f"{family} {dict(labels).get('result', '')}".strip(): value
        for family in COUNTERS
        for labels, value in read(url).series(family).items()
    }


def regenerate(id: str) -> dict[str, str]:
    return {"type": "regenerate", "app": "shop", "id": id}


class Load:
    """Posts events one by one and in batches until the sidecar is gone, and scrapes meanwhile."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self.observed: dict[str, float] = {}
        self.doomed = False

    def run(self, seconds: float) -> None:
        """Kills at the first acknowledgement after `seconds`, when one given too early would
        not be on disk yet."""
        self.doomed = False
        threads = [threading.Thread(target=self._post, args=(size,)) for size in (1, 1, 1, 40)]
        threads.append(threading.Thread(target=self._scrape))
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.doomed = True
        for thread in threads:
            thread.join()

    def observe(self) -> dict[str, float]:
        """What /metrics counts now: never less than it ever did."""
        found = counters(self.server.url)
        assert all(found.get(name, 0) >= value for name, value in self.observed.items())
        self.observed = found
        return found

    def _post(self, size: int) -> None:
        while True:
            ids = {uuid.uuid4().hex for _ in range(size)}
            self.sent |= ids
            events = [regenerate(id) for id in ids]
            try:
                if size == 1:
                    status, answer = post(self.server.netloc, "/v1/events", events[0])
                else:
                    status, answer = post(
                        self.server.netloc, "/v1/events:batch", {"events": events}
                    )
            except (OSError, http.client.HTTPException, ValueError):
                return
            if self.doomed:
                self.server.kill()
            assert status == 200, answer
            self.acknowledged |= ids

    def _scrape(self) -> None:
        while True:
            try:
                self.observe()
            except httpx.TransportError:
                return


def test_kill_loses_no_acknowledged_event_and_counts_none_twice(tmp_path: Path) -> None:
    server = sidecar(tmp_path, flags=("--gpu", "off", "--host", "off"))
    load = Load(server)
    for _ in range(4):
        with server:
            total = load.observe().get("inferslo_regenerations_total", 0)
            assert len(load.acknowledged) <= total <= len(load.sent)
            load.run(random.uniform(0.2, 1.2))
    assert len(load.acknowledged) > 100, "the load was too light to prove anything"

    with server:
        total = load.observe()["inferslo_regenerations_total"]
        assert len(load.acknowledged) <= total <= len(load.sent)
        statuses = dict(repost(server.netloc, load.sent))
        assert {statuses[id] for id in load.acknowledged} == {"duplicate"}
        # What was in flight at a kill may have been counted or not, but the id tells which.
        assert total == sum(status == "duplicate" for status in statuses.values())
        found = load.observe()
    assert found["inferslo_regenerations_total"] == len(load.sent)
    assert found["inferslo_events_received_total accepted"] == len(load.sent)
    assert found["inferslo_events_received_total duplicate"] == total


def repost(netloc: str, ids: set[str]) -> Iterator[tuple[str, str]]:
    ordered = sorted(ids)
    for start in range(0, len(ordered), 500):
        part = ordered[start : start + 500]
        body = {"events": [regenerate(id) for id in part]}
        _, answer = post(netloc, "/v1/events:batch", body)
        yield from zip(part, (item["status"] for item in answer["items"]), strict=True)
