"""Reads one page over HTTP within a total deadline and a size bound.

Common clients bound the silence between two bytes, not the whole exchange: a server that sends
one byte a second holds them for hours. Here every socket operation gets what is left of one
deadline. Only the look-up of a name cannot be bounded: the system resolver has timeouts of its
own. The protocol itself is h11's.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, urljoin, urlsplit

import h11

from .reading import ErrorKind, SourceError

MAX_REDIRECTS = 3
# Naming OpenMetrics here, with whatever preference, makes prometheus_client answer in it.
_ACCEPT = b"text/plain;version=0.0.4, */*;q=0.1"
_CHUNK = 65536
_MAX_TARGET = 2000  # characters of a redirect's target
_SHOWN = 200  # characters of what a server told, in an error


@dataclass(frozen=True, slots=True)
class Response:
    """The body of a 200 answer, decompressed, and its content type."""

    body: bytes
    content_type: str


class Fetcher(Protocol):
    """Gets a page, or raises SourceError."""

    def get(self, url: str) -> Response: ...


class _StaleConnectionError(Exception):
    """The server closed a kept connection before it answered; a new one may do."""


@dataclass(slots=True)
class _Connection:
    sock: socket.socket
    http: h11.Connection
    used: bool = False


@dataclass(slots=True)
class _Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class HttpFetcher:
    """Gets pages of one server; not thread-safe, one per source.

    deadline: seconds for the whole exchange, redirects included, name look-up excepted.
    max_bytes: of the body, before and after decompression. bearer_token: or a function asked for
    it at each request, since tokens in files are rotated. Redirects are followed only within
    scheme, host and port, so that a bearer token never travels elsewhere. A proxy named in the
    environment is not used.
    """

    def __init__(
        self,
        *,
        deadline: float = 5.0,
        max_bytes: int = 16 << 20,
        bearer_token: str | Callable[[], str] | None = None,
        ca_file: Path | None = None,
        verify: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._bearer_token = bearer_token
        self._ca_file = ca_file
        self._verify = verify
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._kept: tuple[str, _Connection] | None = None

    def get(self, url: str) -> Response:
        ends = self._clock() + self._deadline
        try:
            for _ in range(MAX_REDIRECTS + 1):
                answer = self._exchange(urlsplit(url), ends)
                if answer.status not in (301, 302, 303, 307, 308):
                    return self._checked(url, answer)
                url = _redirected(url, answer)
        except TimeoutError as error:
            raise SourceError(
                ErrorKind.TIMEOUT, f"{url} did not answer in full within {self._deadline:g} s"
            ) from error
        raise SourceError(ErrorKind.REDIRECT, f"{url}: more than {MAX_REDIRECTS} redirects")

    def close(self) -> None:
        if self._kept is not None:
            self._kept[1].sock.close()
            self._kept = None

    def _left(self, ends: float) -> float:
        left = ends - self._clock()
        if left <= 0:
            raise TimeoutError
        return left

    # --- one request and its answer -----------------------------------------------------------

    def _exchange(self, url: SplitResult, ends: float) -> _Answer:
        connection = self._take(url.netloc) or self._connect(url, ends)
        try:
            return self._roundtrip(connection, url, ends)
        except _StaleConnectionError:
            return self._roundtrip(self._connect(url, ends), url, ends)

    def _roundtrip(self, connection: _Connection, url: SplitResult, ends: float) -> _Answer:
        keep = False
        try:
            self._send(connection, url, ends)
            answer = self._receive(connection, url, ends)
            keep = connection.http.our_state is h11.DONE and connection.http.their_state is h11.DONE
            return answer
        except h11.RemoteProtocolError as error:
            raise SourceError(*_protocol_error(url, error)) from error
        except TimeoutError:
            raise
        except ssl.SSLError as error:
            raise SourceError(ErrorKind.TLS, f"{url.geturl()}: {error}") from error
        except OSError as error:
            if connection.used and connection.http.their_state is h11.SEND_RESPONSE:
                raise _StaleConnectionError from error
            raise SourceError(
                ErrorKind.TRUNCATED, f"{url.geturl()}: connection lost: {error.strerror or error}"
            ) from error
        finally:
            self._keep_or_close(connection, url.netloc, keep)

    def _send(self, connection: _Connection, url: SplitResult, ends: float) -> None:
        request = self._request(url)
        connection.sock.settimeout(self._left(ends))
        connection.sock.sendall(
            (connection.http.send(request) or b"")
            + (connection.http.send(h11.EndOfMessage()) or b"")
        )

    def _request(self, url: SplitResult) -> h11.Request:
        token = self._bearer_token() if callable(self._bearer_token) else self._bearer_token
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            return h11.Request(method="GET", target=target, headers=_headers(url, token))
        except (UnicodeError, h11.LocalProtocolError):  # whose text may hold the token
            raise SourceError(
                ErrorKind.REFUSED,
                f"{_shown(url.geturl())} cannot be asked for: percent-encode what is not printable"
                " ASCII, and check the host",
            ) from None

    def _receive(self, connection: _Connection, url: SplitResult, ends: float) -> _Answer:
        answer = _Answer(0, {}, b"")
        chunks: list[bytes] = []
        size = 0
        while True:
            event = connection.http.next_event()
            if event is h11.NEED_DATA:
                self._more(connection, ends)
            elif isinstance(event, h11.Response):
                answer.status = event.status_code
                answer.headers = {k.decode().lower(): v.decode("latin-1") for k, v in event.headers}
                self._check_size(url, int(answer.headers.get("content-length", 0)))
            elif isinstance(event, h11.Data):
                size += len(event.data)
                self._check_size(url, size)
                chunks.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                answer.body = b"".join(chunks)
                return answer

    def _more(self, connection: _Connection, ends: float) -> None:
        connection.sock.settimeout(self._left(ends))
        data = connection.sock.recv(_CHUNK)
        if not data and connection.used and connection.http.their_state is h11.SEND_RESPONSE:
            raise _StaleConnectionError
        connection.http.receive_data(data)

    def _check_size(self, url: SplitResult, size: int) -> None:
        if size > self._max_bytes:
            raise SourceError(
                ErrorKind.TOO_LARGE,
                f"{url.geturl()} is larger than {self._max_bytes} bytes: is it the metrics page?"
                " If it is, raise max_page_bytes.",
            )

    # --- connections --------------------------------------------------------------------------

    def _take(self, netloc: str) -> _Connection | None:
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        if kept[0] == netloc and _is_quiet(kept[1]):
            return kept[1]
        kept[1].sock.close()
        return None

    def _keep_or_close(self, connection: _Connection, netloc: str, keep: bool) -> None:
        if not keep:
            connection.sock.close()
            return
        connection.http.start_next_cycle()
        connection.used = True
        self._kept = (netloc, connection)

    def _connect(self, url: SplitResult, ends: float) -> _Connection:
        host = url.hostname or ""
        secure = url.scheme == "https"
        sock = self._connect_to_any(host, url.port or (443 if secure else 80), ends)
        if secure:
            sock = self._secure(sock, host, ends)
        return _Connection(sock, h11.Connection(h11.CLIENT))

    def _connect_to_any(self, host: str, port: int, ends: float) -> socket.socket:
        """As socket.create_connection, which gives each address of the host the whole timeout."""
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(ErrorKind.DNS, f"{host}: {reason}") from error
        refusal = OSError("no address")
        for family, kind, protocol, _, address in addresses:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self._left(ends))
                sock.connect(address)
            except TimeoutError:
                sock.close()
                raise
            except OSError as error:
                sock.close()
                refusal = error
            else:
                return sock
        raise SourceError(
            ErrorKind.REFUSED,
            f"{host}:{port}: {refusal.strerror or refusal}: is the server running there?",
        ) from refusal

    def _secure(self, sock: socket.socket, host: str, ends: float) -> socket.socket:
        if self._context is None:
            self._context = ssl.create_default_context(cafile=self._ca_file)
            if not self._verify:
                self._context.check_hostname = False
                self._context.verify_mode = ssl.CERT_NONE
        try:
            sock.settimeout(self._left(ends))
            return self._context.wrap_socket(sock, server_hostname=host)
        except TimeoutError:
            sock.close()
            raise
        except OSError as error:  # SSLError, and a peer that hangs up in mid-handshake
            sock.close()
            reason = getattr(error, "verify_message", "") or error
            raise SourceError(
                ErrorKind.TLS, f"{host}: {reason}; name the server's CA with ca_file"
            ) from error

    # --- the answer ---------------------------------------------------------------------------

    def _checked(self, url: str, answer: _Answer) -> Response:
        if answer.status in (401, 403):
            raise SourceError(
                ErrorKind.UNAUTHORIZED,
                f"{url} answered HTTP {answer.status}: set bearer_token_file for this source",
            )
        if answer.status != 200:
            hint = ": is the address right?" if answer.status == 404 else ""
            raise SourceError(ErrorKind.STATUS, f"{url} answered HTTP {answer.status}{hint}")
        return Response(self._decoded(url, answer), answer.headers.get("content-type", ""))

    def _decoded(self, url: str, answer: _Answer) -> bytes:
        encoding = answer.headers.get("content-encoding", "identity").lower()
        if encoding == "identity":
            return answer.body
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise SourceError(
                ErrorKind.NOT_METRICS, f"{url} is encoded as {_shown(encoding)}, unasked"
            )
        body, packed = b"", answer.body
        while packed:  # gzip data may have several members
            decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
            try:
                body += decompressor.decompress(packed, self._max_bytes + 1 - len(body))
            except zlib.error as error:
                detail = f"{url}: bad {encoding} data: {error}"
                raise SourceError(ErrorKind.MALFORMED, detail) from error
            self._check_size(urlsplit(url), len(body))
            if not decompressor.eof:
                raise SourceError(ErrorKind.TRUNCATED, f"{url}: the {encoding} data ends early")
            packed = decompressor.unused_data
        return body


def _headers(url: SplitResult, token: str | None) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"Host", url.netloc.rpartition("@")[2].encode("idna")),
        (b"Accept", _ACCEPT),
        (b"Accept-Encoding", b"gzip"),
        (b"User-Agent", f"inferslo/{version('inferslo')}".encode()),
    ]
    if token:
        headers.append((b"Authorization", b"Bearer " + token.encode()))
    return headers


def _is_quiet(connection: _Connection) -> bool:
    """Whether nothing lies unread: an answer that nobody asked for would be taken for the next."""
    unread = select.poll()
    unread.register(connection.sock, select.POLLIN)
    return not connection.http.trailing_data[0] and not unread.poll(0)


def _shown(text: str) -> str:
    """What a server told, as one short line of ASCII."""
    told = ascii(text)[1:-1]
    return told if len(told) <= _SHOWN else told[:_SHOWN] + "..."


def _redirected(url: str, answer: _Answer) -> str:
    location = answer.headers.get("location", "")
    try:
        target = urljoin(url, location)
        elsewhere = urlsplit(target)[:2] != urlsplit(url)[:2]
    except ValueError:
        target, elsewhere = location, True
    if elsewhere:
        raise SourceError(
            ErrorKind.REDIRECT,
            f"{url} redirects to {_shown(target)}; not followed. Name that URL if it is the right"
            " one.",
        )
    if len(target) > _MAX_TARGET or not re.fullmatch("[!-~]+", target):
        raise SourceError(
            ErrorKind.REDIRECT,
            f"{url} redirects to {_shown(target)}; not followed: it is no URL of printable ASCII"
            f" and at most {_MAX_TARGET} characters",
        )
    return target


def _protocol_error(url: SplitResult, error: h11.RemoteProtocolError) -> tuple[ErrorKind, str]:
    if "closed connection" in str(error):
        return ErrorKind.TRUNCATED, f"{url.geturl()}: the server closed before the end of the page"
    return ErrorKind.NOT_METRICS, f"{url.geturl()} does not speak HTTP: {_shown(str(error))}"
