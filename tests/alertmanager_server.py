"""A real Alertmanager of today, and the place where its notifications end: a small HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from e2e.processes import Server, free_port, wait_until


@dataclass(frozen=True, slots=True)
class Notification:
    """What was posted, and the name of the receiver: the last part of the path."""

    receiver: str
    body: dict[str, Any]

    @property
    def status(self) -> str:
        """Of a webhook: firing or resolved."""
        return self.body["status"]

    @property
    def names(self) -> list[str]:
        """Values of `slo` of the alerts in a webhook, sorted."""
        return sorted(alert["labels"].get("slo", "") for alert in self.body["alerts"])


class Inbox:
    """Keeps each POST. Receiver X posts to `url + "/X"`."""

    def __init__(self) -> None:
        self._server = _Listener(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.received: list[Notification] = []

    def __enter__(self) -> Inbox:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of(self, receiver: str) -> list[Notification]:
        return [each for each in self.received if each.receiver == receiver]

    def wait(
        self, wanted: Callable[[Notification], bool], what: str, seconds: float = 15
    ) -> Notification:
        """The first that is wanted, once there is one."""
        found = wait_until(what, lambda: [each for each in self.received if wanted(each)], seconds)
        return found[0]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, inbox: Inbox) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.inbox = inbox


class _Handler(BaseHTTPRequestHandler):
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride] - it is that

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name = self.path.rpartition("/")[2]
        self.server.inbox.received.append(Notification(name, json.loads(body)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def alertmanager(scratch: Path, config: str, *cluster: str) -> Iterator[Server]:
    """One that can be stopped and started again, with what it had stored. cluster: its flags of
    peers; by default it has none."""
    (scratch / "alertmanager.yaml").write_text(config, encoding="utf-8")
    listen = f"127.0.0.1:{free_port()}"
    command = ["prometheus-alertmanager", f"--config.file={scratch / 'alertmanager.yaml'}"]
    command += [f"--storage.path={scratch / 'alertmanager'}", f"--web.listen-address={listen}"]
    command += cluster or ["--cluster.listen-address="]
    log = scratch / "alertmanager.log"
    with Server(command, f"http://{listen}", "/-/ready", log) as server:
        yield server
