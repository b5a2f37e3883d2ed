"""An engine that is stood in for, and what a process costs: what several benchmarks need.

A small HTTP server, in a process of its own, that gives a page of a real vLLM in overload whose
counters rise with every read.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "tests" / "captures" / "vllm-0.32.0__mid-overload.prom").read_bytes()
COUNTER = re.compile(rb"^([^#\s{]*(?:_total|_bucket|_count)(?:\{.*\})?) (\d+)\.0$", re.MULTILINE)
SLOW_SECONDS = 30


class _EnginePage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the kernel holds the body back for 40 ms
    reads = 0

    def do_GET(self) -> None:
        if self.path.endswith("version"):
            body = b'{"version":"0.32.0"}'
        else:
            _EnginePage.reads += 1
            body = COUNTER.sub(self._raised, PAGE)
        if self.path.startswith("/slow"):
            time.sleep(SLOW_SECONDS)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _raised(self, found: re.Match[bytes]) -> bytes:
        return b"%s %d.0" % (found[1], int(found[2]) + _EnginePage.reads)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Engines(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The sidecar does not wait for the slow page."""


def _serve(port: Connection) -> None:
    server = _Engines(("127.0.0.1", 0), _EnginePage)
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def engines() -> Iterator[str]:
    """The URL below which every path is an engine's page; below /slow it takes 30 s."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.kill()
        process.join()


def rss(pid: int) -> float:
    return vm_rss(Path(f"/proc/{pid}/status").read_text())


def vm_rss(status: str) -> float:
    """MB (10^6 bytes), of the text of /proc/PID/status."""
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
