"""What the fetcher gives, and the error it raises for each way a server can misbehave."""

from __future__ import annotations

import errno
import gzip
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from badserver import PAGE, BadServer

from inferslo.exporters.http import HttpFetcher
from inferslo.exporters.reading import ErrorKind, SourceError


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BadServer]:
    with BadServer(tmp_path) as server:
        yield server


Make = Callable[..., HttpFetcher]


@pytest.fixture
def fetcher() -> Iterator[Make]:
    made: list[HttpFetcher] = []

    def make(**options: Any) -> HttpFetcher:
        made.append(HttpFetcher(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def failure(fetcher: HttpFetcher, url: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        fetcher.get(url)
    return caught.value


@pytest.mark.parametrize("path", ["/metrics", "/gzip", "/redirect-same"])
def test_a_good_page_comes_whole_however_it_travels(
    server: BadServer, path: str, fetcher: Make
) -> None:
    response = fetcher().get(server.url + path)

    assert response.body == PAGE
    assert response.content_type.startswith("text/plain")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/500", ErrorKind.STATUS),
        ("/no-such-page", ErrorKind.STATUS),
        ("/401", ErrorKind.UNAUTHORIZED),
        ("/half", ErrorKind.TRUNCATED),
        ("/big", ErrorKind.TOO_LARGE),
        ("/gzip-bomb", ErrorKind.TOO_LARGE),
        ("/slow", ErrorKind.TIMEOUT),
        ("/hang", ErrorKind.TIMEOUT),
        ("/redirect-other", ErrorKind.REDIRECT),
        ("/redirect-loop", ErrorKind.REDIRECT),
    ],
)
def test_each_misbehaviour_has_its_kind(
    server: BadServer, path: str, kind: ErrorKind, fetcher: Make
) -> None:
    error = failure(fetcher(deadline=2.0, max_bytes=1 << 20), server.url + path)

    assert error.kind is kind
    assert server.url in error.detail


def test_a_redirect_to_another_host_is_not_asked(server: BadServer, fetcher: Make) -> None:
    failure(fetcher(bearer_token="secret"), server.url + "/redirect-other")

    assert [path for _, path in server.seen] == ["/redirect-other"]


def test_all_members_of_gzip_data_are_read(fetcher: Make) -> None:
    packed = gzip.compress(b"a 1\n") + gzip.compress(b"b 2\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    with raw_server(head % len(packed) + packed) as url:
        assert fetcher().get(url).body == b"a 1\nb 2\n"


def test_the_deadline_is_one_for_all_addresses_of_a_host(
    fetcher: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection attempt is given what is left, and the attempts end with it."""
    given: list[float | None] = []

    class Deaf(socket.socket):
        def settimeout(self, value: float | None, /) -> None:
            given.append(value)

        def connect(self, address: object, /) -> None:
            now[0] += 2.0
            raise OSError(errno.EHOSTUNREACH, "No route to host")

    now = [100.0]
    address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("192.0.2.1", 80))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address] * 4)
    monkeypatch.setattr(socket, "socket", Deaf)

    error = failure(fetcher(deadline=5.0, clock=lambda: now[0]), "http://several.invalid/metrics")

    assert error.kind is ErrorKind.TIMEOUT
    assert given == [5.0, 3.0, 1.0]


@pytest.mark.parametrize("path", ["/big", "/gzip-bomb"])
def test_a_page_of_200_mb_does_not_fill_the_memory(server: BadServer, path: str) -> None:
    """In a process of its own, since the server has the 200 MB in its memory."""
    done = subprocess.run(
        [sys.executable, "-c", _FETCH, server.url + path],
        capture_output=True,
        text=True,
        timeout=60,
    )

    kind, grown_kib = done.stdout.split()
    assert kind == "too_large", done.stderr
    assert int(grown_kib) < 20 << 10


_FETCH = """
import resource, sys
from inferslo.exporters.http import HttpFetcher
from inferslo.exporters.reading import SourceError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    HttpFetcher(deadline=30.0, max_bytes=1 << 20).get(sys.argv[1])
except SourceError as error:
    print(error.kind, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_certificate_nobody_signed_is_refused(server: BadServer, fetcher: Make) -> None:
    error = failure(fetcher(), server.tls_url + "/metrics")

    assert error.kind is ErrorKind.TLS
    assert "ca_file" in error.detail


def test_a_certificate_of_the_named_ca_is_taken(server: BadServer, fetcher: Make) -> None:
    one = fetcher(ca_file=server.certificate)

    assert one.get(server.tls_url + "/metrics").body == PAGE


def test_an_unchecked_certificate_is_taken_when_told_so(server: BadServer, fetcher: Make) -> None:
    assert fetcher(verify=False).get(server.tls_url + "/metrics").body == PAGE


def test_plain_http_to_a_tls_port_and_the_reverse_are_errors(
    server: BadServer, fetcher: Make
) -> None:
    to_tls = failure(fetcher(deadline=2.0), server.tls_url.replace("https", "http") + "/metrics")
    to_plain = failure(fetcher(deadline=2.0), server.url.replace("http", "https") + "/metrics")

    assert to_tls.kind in (ErrorKind.TRUNCATED, ErrorKind.NOT_METRICS)
    assert to_plain.kind is ErrorKind.TLS


def test_nobody_listening_is_refused(fetcher: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    error = failure(fetcher(), f"http://127.0.0.1:{port}/metrics")

    assert error.kind is ErrorKind.REFUSED
    assert str(port) in error.detail


def test_an_unknown_name_is_a_dns_error(fetcher: Make) -> None:
    assert failure(fetcher(), "http://no-such-host.invalid/metrics").kind is ErrorKind.DNS


def test_a_server_that_does_not_speak_http_is_not_metrics(fetcher: Make) -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.2\r\n\r\n") as url:
        assert failure(fetcher(), url).kind is ErrorKind.NOT_METRICS


def test_headers_that_drip_end_at_the_deadline(fetcher: Make) -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1000, drip=True) as url:
        assert failure(fetcher(deadline=0.5), url).kind is ErrorKind.TIMEOUT


def test_the_connection_is_kept_between_two_reads_and_made_anew_when_it_was_closed(
    fetcher: Make,
) -> None:
    accepted: list[int] = []
    with raw_server(_OK, accepted=accepted, answers=2) as url:
        one = fetcher()
        bodies = [one.get(url).body for _ in range(4)]

    assert bodies == [b"x 1\n"] * 4
    assert len(accepted) == 2


@pytest.mark.parametrize("length", [4, 65_494])
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(
    length: int, fetcher: Make
) -> None:
    """Of the longer one the first read of the socket ends where the surplus begins."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length
    surplus = _OK.replace(b"x 1", b"old")
    with raw_server(head + b"x" * length + surplus * 2, answers=3) as url:
        one = fetcher()
        bodies = [one.get(url).body for _ in range(3)]
        one.close()

    assert bodies == [b"x" * length] * 3


@pytest.mark.parametrize(
    "location",
    [
        "/métrics".encode(),
        b"/m\xe9",
        b"/a b",
        b"/a\x7fb",
        b"http://[::1",
        b"http://127.0.0.1:99999/",
        b"http://x/\xc2\x9b31m",
        b"/" + b"a" * 15_000,
    ],
)
def test_a_redirect_to_no_url_is_an_error_of_one_short_line(location: bytes, fetcher: Make) -> None:
    answer = b"HTTP/1.1 302 F\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    with raw_server(answer) as url:
        error = failure(fetcher(), url)

    assert error.kind is ErrorKind.REDIRECT
    assert error.detail.isascii()
    assert error.detail.isprintable()
    assert len(error.detail) < 500


@pytest.mark.parametrize("path", ["é", "\x1b", "a b", "\ud800"])
def test_a_url_that_cannot_be_asked_for_is_an_error_without_the_token(
    path: str, fetcher: Make
) -> None:
    with raw_server(_OK) as url:
        error = failure(fetcher(bearer_token="s3cret"), f"{url}/{path}")

    assert error.kind is ErrorKind.REFUSED
    assert "percent-encode" in error.detail
    assert "s3cret" not in error.detail
    assert error.detail.isprintable()


def test_an_encoding_or_a_first_line_of_a_server_is_told_in_short(fetcher: Make) -> None:
    odd = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 1\r\n\r\nx"
    for answer in (odd % (b"\xc2\x9b" * 5000), b"SSH-" + b"\xff" * 9000 + b"\r\n\r\n"):
        with raw_server(answer) as url:
            error = failure(fetcher(), url)
        assert error.kind is ErrorKind.NOT_METRICS
        assert error.detail.isprintable()
        assert len(error.detail) < 500


def test_the_bearer_token_is_sent(fetcher: Make) -> None:
    requests: list[bytes] = []
    with raw_server(_OK, requests=requests) as url:
        fetcher(bearer_token="s3cret").get(url)

    assert b"\r\nAuthorization: Bearer s3cret\r\n" in requests[0]


def test_a_token_that_was_rotated_is_sent_as_it_is_now(fetcher: Make) -> None:
    tokens = iter(["old", "new"])
    requests: list[bytes] = []
    with raw_server(_OK, requests=requests, answers=2) as url:
        one = fetcher(bearer_token=lambda: next(tokens))
        one.get(url)
        one.get(url)

    assert [b"Bearer old" in requests[0], b"Bearer new" in requests[1]] == [True, True]


_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nx 1\n"


class raw_server:  # noqa: N801 - reads as a context manager
    """Answers each request with `answer` as it is, and hangs up after `answers` of them."""

    def __init__(
        self,
        answer: bytes,
        *,
        drip: bool = False,
        answers: int = 1,
        accepted: list[int] | None = None,
        requests: list[bytes] | None = None,
    ) -> None:
        self._answer = answer
        self._drip = drip
        self._answers = answers
        self._accepted = accepted if accepted is not None else []
        self._requests = requests if requests is not None else []
        self._stop = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> str:
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/metrics"

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, peer = self._socket.accept()
            except OSError:
                return
            self._accepted.append(peer[1])
            with connection:
                for _ in range(self._answers):
                    try:
                        self._requests.append(connection.recv(65536))
                    except ConnectionResetError:
                        break  # the client left something unread
                    self._reply(connection)

    def _reply(self, connection: socket.socket) -> None:
        step = 1 if self._drip else len(self._answer)
        for i in range(0, len(self._answer), step):
            try:
                connection.sendall(self._answer[i : i + step])
            except OSError:
                return
            if self._drip and self._stop.wait(0.1):
                return
