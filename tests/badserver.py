"""An HTTP server that misbehaves in every way an engine's metrics page has been seen to.

Real sockets on ephemeral ports of 127.0.0.1, one thread per connection:

    with BadServer(tmp_path) as server:
        fetch(server.url + "/half")

`/metrics` and `/plain` are the good page; `tls_url` is the same server behind a certificate
that nobody signed.
"""

from __future__ import annotations

import gzip
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PAGE = b"# TYPE good gauge\ngood 1\n"
BIG = 200_000_000
HTML = b"<!DOCTYPE html><html><body>Welcome to nginx</body></html>"


class BadServer:
    """`seen` lists (Host header, path) of every request, so that a test can say who was asked."""

    def __init__(self, scratch: Path, page: bytes = PAGE) -> None:
        self.page = page
        self.seen: list[tuple[str, str]] = []
        self.stopping = threading.Event()
        self.certificate = scratch / "self-signed.pem"
        key = scratch / "self-signed.key"
        _self_sign(self.certificate, key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._plain = _Listener(self)
        self._tls = _Listener(self, context)
        self.url = f"http://127.0.0.1:{self._plain.server_port}"
        self.tls_url = f"https://127.0.0.1:{self._tls.server_port}"
        # Another host by name, and yet it would answer: following the redirect shows in `seen`.
        self.other_url = f"http://localhost:{self._plain.server_port}"

    def __enter__(self) -> Self:
        for listener in (self._plain, self._tls):
            threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        for listener in (self._plain, self._tls):
            listener.shutdown()
            listener.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, bad: BadServer, context: ssl.SSLContext | None = None) -> None:
        self.bad = bad
        self._context = context
        super().__init__(("127.0.0.1", 0), _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """The handshake is done here, in the connection's own thread, not in the accept loop."""
        if self._context is None:
            super().finish_request(request, client_address)
            return
        with self._context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up and refuse the certificate: that is what this server is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener  # pyright: ignore[reportIncompatibleVariableOverride]  # no other makes us

    def do_GET(self) -> None:
        self.server.bad.seen.append((self.headers.get("Host", ""), self.path))
        # "/half" and "/half/metrics" are the same: sources add the latter part.
        answer = ANSWERS.get(self.path.removesuffix("/metrics") or "/metrics")
        if answer is None:
            self.reply(404, b"no such page\n", {"Content-Type": "text/plain"})
        else:
            answer(self)

    def reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.start(status, {"Content-Length": str(len(body)), **headers})
        self.wfile.write(body)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def drip(self, pieces: Iterator[bytes]) -> None:
        """A body of unknown length: it ends when the connection does."""
        self.close_connection = True
        self.start(200, {**TEXT, "Connection": "close"})
        for piece in pieces:
            self.wfile.write(piece)

    def bytes_a_second(self) -> Iterator[bytes]:
        for byte in self.server.bad.page:
            yield bytes([byte])
            if self.server.bad.stopping.wait(1):
                return

    def log_message(self, format: str, *args: object) -> None:
        pass


TEXT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
ZIPPED = {**TEXT, "Content-Encoding": "gzip"}


def _good(handler: _Handler) -> None:
    handler.reply(200, handler.server.bad.page, TEXT)


def _gzip(handler: _Handler) -> None:
    handler.reply(200, gzip.compress(handler.server.bad.page), ZIPPED)


@cache
def packed_zeros() -> bytes:
    return gzip.compress(bytes(BIG), compresslevel=1)


def _bomb(handler: _Handler) -> None:
    """200 kB on the wire, 200 MB once unpacked."""
    handler.reply(200, packed_zeros(), ZIPPED)


def _big(handler: _Handler) -> None:
    line = b"good 1\n" * 10_000
    handler.drip(line for _ in range(BIG // len(line) + 1))


def _half(handler: _Handler) -> None:
    handler.close_connection = True
    page = handler.server.bad.page
    handler.start(200, {**TEXT, "Content-Length": str(2 * len(page))})
    handler.wfile.write(page)


def _hang(handler: _Handler) -> None:
    handler.server.bad.stopping.wait()
    handler.close_connection = True


ANSWERS: Mapping[str, Callable[[_Handler], None]] = {
    "/metrics": _good,
    "/plain": _good,
    "/500": lambda h: h.reply(500, b"Internal Server Error", {"Content-Type": "text/plain"}),
    "/401": lambda h: h.reply(401, b"who are you?", {"WWW-Authenticate": "Bearer"}),
    "/html": lambda h: h.reply(200, HTML, {"Content-Type": "text/html; charset=utf-8"}),
    "/json": lambda h: h.reply(200, b'{"status": "ok"}', {"Content-Type": "application/json"}),
    "/empty": lambda h: h.reply(200, b"", TEXT),
    "/gzip": _gzip,
    "/gzip-bomb": _bomb,
    "/big": _big,
    "/half": _half,
    "/slow": lambda h: h.drip(h.bytes_a_second()),
    "/hang": _hang,
    "/redirect-same": lambda h: h.reply(302, b"", {"Location": "/metrics"}),
    "/redirect-loop": lambda h: h.reply(302, b"", {"Location": "/redirect-loop"}),
    "/redirect-other": lambda h: h.reply(
        302, b"", {"Location": h.server.bad.other_url + "/metrics"}
    ),
}  # fmt: skip


def _self_sign(certificate: Path, key: Path) -> None:
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subject = ["-days", "2", "-subj", "/CN=nobody", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", *kind, *subject, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
