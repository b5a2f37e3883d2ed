"""What judging costs a sidecar, minute by minute: memory, CPU, and how its history grows.

    .venv/bin/python bench/judge_soak.py [--minutes 30] [--interval 1] [--no-slo]

A real sidecar with the catalogue's SLO file for chat, judged every second, beside a stand-in that
gives a page of a real vLLM whose counters rise with every read. Prints figures, asserts none.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import httpx

from inferslo.slo import catalogue

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "bench")]

from e2e.processes import Server  # noqa: E402
from e2e.sidecar import read, sidecar  # noqa: E402
from stand_in import cpu_seconds, engines, rss  # noqa: E402

CHAT = files(catalogue).joinpath("chat.yaml").read_text("utf-8")
EVALUATION = "\nevaluation: {{scrape_interval: {0}s, interval: {0}s, base: {1}s}}\n"
SLOPE_OF = 10  # minutes, the last ones


@contextmanager
def running(engine: str, folder: Path, interval: int | None) -> Iterator[Server]:
    """interval: of the judge; None is a sidecar without one."""
    flags = ["--gpu", "off"]
    if interval is not None:
        (folder / "slo.yaml").write_text(CHAT + EVALUATION.format(interval, max(60, 4 * interval)))
        flags += ["--slo", str(folder / "slo.yaml"), "--slo-history", str(folder / "slo.db")]
    with sidecar(folder, engine, flags=flags, poll="1s") as server:
        yield server


def measured(server: Server, folder: Path, minutes: int) -> Iterator[tuple[float, ...]]:
    """Of each minute: MB of memory, seconds of CPU, kB of history."""
    before = cpu_seconds(server.pid)
    ends = time.monotonic()
    for _ in range(minutes):
        ends += 60
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(15, left))
            read(server.url)
        cpu = cpu_seconds(server.pid)
        size = sum(file.stat().st_size for file in folder.glob("slo.db*")) / 1e3
        yield rss(server.pid), cpu - before, size
        before = cpu


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--minutes", type=int, default=30)
    arguments.add_argument("--interval", type=int, default=1, help="seconds between judgements")
    arguments.add_argument("--no-slo", action="store_true", help="a sidecar that judges nothing")
    given = arguments.parse_args()
    interval = None if given.no_slo else given.interval
    with (
        tempfile.TemporaryDirectory() as scratch,
        engines() as url,
        running(f"a={url}/a/metrics", Path(scratch), interval) as server,
    ):
        print("minute  RSS MB  CPU s  history kB", flush=True)
        memory: list[float] = []
        for minute, (held, cpu, size) in enumerate(
            measured(server, Path(scratch), given.minutes), 1
        ):
            print(f"{minute:6}  {held:6.1f}  {cpu:5.2f}  {size:10.0f}", flush=True)
            memory.append(held)
        if interval is not None:
            said = httpx.get(f"{server.url}/v1/slo").json()
            print(f"objectives: {len(said['objectives'])}; fault: {said['fault']}")
    if len(last := memory[-SLOPE_OF:]) > 1:
        slope = statistics.linear_regression(range(len(last)), last).slope
        print(f"slope of the last {len(last)} minutes: {1000 * slope:+.0f} kB a minute")


if __name__ == "__main__":
    main()
