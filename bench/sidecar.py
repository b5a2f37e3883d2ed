"""What a sidecar costs beside its engines, and how fast it answers. Prints figures, asserts none.

    .venv/bin/python bench/sidecar.py [--minutes 10] [--json]

Engines are stood in for by a small HTTP server, in a process of its own, that gives a page of a
real vLLM in overload whose counters rise with every read. The GPU is the tests' fake NVML.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from inferslo.exporters.engines.source import EngineSource
from inferslo.exporters.http import HttpFetcher
from inferslo.exporters.names import PREFIX
from inferslo.exporters.reading import Reading
from inferslo.sidecar.board import Board
from inferslo.sidecar.publisher import Publisher

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "bench")]  # real servers are started there as here

from e2e.processes import Server  # noqa: E402
from e2e.sidecar import read, sidecar  # noqa: E402
from fakenvml import FakeNvml, compile_fake  # noqa: E402
from stand_in import PAGE, SLOW_SECONDS, cpu_seconds, engines, rss, vm_rss  # noqa: E402

SETTLE_SECONDS = 10  # first reads are over, and what hangs is known to hang
ROUNDS = 60
SCRAPES_A_SECOND = 50
# As Prometheus asks.
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure and what it is held against: an aim, or another figure of the same run."""

    what: str
    value: float
    unit: str
    against: str = ""
    reference: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.reference else None


# --- poll to publish ---------------------------------------------------------------------------


def poll_to_publish(url: str) -> list[Row]:
    parse = _median_ms(lambda: list(text_string_to_metric_families(PAGE.decode())))
    fetcher = HttpFetcher()
    fetch = _median_ms(lambda: fetcher.get(f"{url}/0/metrics"))
    fetcher.close()
    against = "prometheus_client's parse"
    return [
        Row(against, parse, "ms"),
        Row("of a poll, waiting for the page of the stand-in", fetch, "ms", against, parse),
        Row("poll to publish", _poll_to_publish(url, 1), "ms", against, parse),
        Row("poll to publish, 8 engines", _poll_to_publish(url, 8), "ms",
            f"8 x {against}", 8 * parse),
    ]  # fmt: skip


def _poll_to_publish(url: str, count: int) -> float:
    """Read every engine once, one after the other, and make the page: worst case, no overlap."""
    board = Board()
    publisher = Publisher(board.points, lambda: board.version)
    sources = [
        EngineSource(f"engine-{number}", f"{url}/{number}/metrics", HttpFetcher())
        for number in range(count)
    ]
    for source in sources:
        board.add(source)

    def once() -> None:
        for source in sources:
            board.begin(source.name)
            board.finish(Reading(source.name, time.time(), 0.0, source.observe()))
        publisher.page("text/plain", compress=False)

    return _median_ms(once)


def _median_ms(work: Callable[[], object]) -> float:
    def timed() -> float:
        began = time.perf_counter()
        work()
        return 1000 * (time.perf_counter() - began)

    work()
    return statistics.median(timed() for _ in range(ROUNDS))


# --- memory and CPU ----------------------------------------------------------------------------


def footprint(engines: tuple[str, str], scratch: Path, minutes: float) -> list[Row]:
    """CPU is of a sidecar without GPU: the fake reads its script anew at every call."""
    bare = _rss_of_imports("fastapi, uvicorn, pynvml")
    beside = scratch / "gpu-less"
    beside.mkdir()
    with _with_gpu(scratch, engines)[0] as with_gpu, sidecar(beside, *engines, poll="2s") as plain:
        began, cpu = time.monotonic(), cpu_seconds(plain.pid)
        _scrape_now_and_then((with_gpu, plain), began + 60 * minutes)
        share = 100 * (cpu_seconds(plain.pid) - cpu) / (time.monotonic() - began)
        memory, memory_with_gpu = rss(plain.pid), rss(with_gpu.pid)
    after = f"{minutes:g} min, 2 engines, poll 2 s, scrape 15 s"
    return [
        Row("RSS of fastapi, uvicorn, pynvml alone", bare, "MB"),
        Row(f"sidecar RSS, {after}", memory, "MB", "aim", 60),
        Row(f"sidecar RSS, {after}, a GPU", memory_with_gpu, "MB", "aim", 60),
        Row(f"sidecar CPU, {after}", share, "% of a core", "aim", 1),
    ]


def _with_gpu(scratch: Path, engines: Sequence[str]) -> tuple[Server, FakeNvml]:
    """A sidecar beside the engines and one GPU, and the script of that GPU."""
    gpu = FakeNvml(scratch / "gpu")
    environment = gpu.environment(compile_fake(scratch))
    return sidecar(scratch, *engines, flags=("--gpu", "on"), poll="2s", env=environment), gpu


def _scrape_now_and_then(watchers: Sequence[Server], ends: float) -> None:
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(15, left))
        for watcher in watchers:
            read(watcher.url)


def _rss_of_imports(modules: str) -> float:
    code = f"import {modules}; print(open('/proc/self/status').read())"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return vm_rss(ran.stdout)


# --- scrapes -----------------------------------------------------------------------------------


def scrapes(engines: tuple[str, str], slow: str, scratch: Path, seconds: float) -> list[Row]:
    watcher, gpu = _with_gpu(scratch, engines)
    with watcher:
        normal = _scrape_times(watcher, seconds)
        gpu.hang("gpu0")
        hanging = _scrape_times(watcher, seconds)
        gpu.release("gpu0")
    with _with_gpu(scratch, (*engines, slow))[0] as watcher:
        waiting = _scrape_times(watcher, seconds)
    return [
        *_percentiles("normal", normal, normal),
        *_percentiles("NVML hangs", hanging, normal),
        *_percentiles(f"an engine page takes {SLOW_SECONDS} s", waiting, normal),
    ]


def _percentiles(condition: str, times: list[float], normal: list[float]) -> list[Row]:
    return [
        Row(f"/metrics p{percent}, {SCRAPES_A_SECOND}/s, {condition}", _percentile(times, percent),
            "ms", "normal", _percentile(normal, percent))
        for percent in (50, 99)
    ]  # fmt: skip


def _percentile(times: list[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1]


def _scrape_times(watcher: Server, seconds: float) -> list[float]:
    """Milliseconds from the moment that each scrape was due: a late one delays those behind it."""
    time.sleep(SETTLE_SECONDS)
    connection = HTTPConnection(watcher.netloc, timeout=60)
    began = time.perf_counter()
    times = []
    for number in range(int(seconds * SCRAPES_A_SECOND)):
        due = began + number / SCRAPES_A_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        connection.request("GET", "/metrics", headers={"Accept": ACCEPT, "Accept-Encoding": "gzip"})
        connection.getresponse().read()
        times.append(1000 * (time.perf_counter() - due))
    connection.close()
    return times


# --- series ------------------------------------------------------------------------------------


def series(engine: str, scratch: Path) -> list[Row]:
    with sidecar(scratch, engine, poll="2s") as watcher:
        time.sleep(SETTLE_SECONDS)
        published = sum(
            1
            for name, labels in read(watcher.url).samples
            if name.startswith(PREFIX) and "engine" in dict(labels)
        )
    own = sum(1 for line in PAGE.splitlines() if line and not line.startswith(b"#"))
    return [
        Row("series on the engine's own page", own, ""),
        Row("series published per engine", published, "", "the engine's own page", own),
    ]


# --- the table ---------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    lines = [f"{'':66} {'measured':>20}   {'against':<34} ratio"]
    for row in rows:
        measured = f"{row.value:.4g} {row.unit}"
        against = f"{row.against}: {row.reference:.4g}" if row.reference else ""
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
        lines.append(f"{row.what:66} {measured:>20}   {against:<34} {ratio}".rstrip())
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--minutes", type=float, default=10, help="of the memory run")
    arguments.add_argument("--seconds", type=float, default=30, help="of each run of scrapes")
    arguments.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = arguments.parse_args()
    with engines() as url, tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        two = (f"a={url}/a/metrics", f"b={url}/b/metrics")
        rows = [
            *poll_to_publish(url),
            *series(two[0], folder),
            *scrapes(two, f"c={url}/slow/metrics", folder, given.seconds),
            *footprint(two, folder, given.minutes),
        ]
    if given.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows], indent=2))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
