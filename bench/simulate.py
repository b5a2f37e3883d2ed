"""What simulating costs. Prints figures, asserts none.

    .venv/bin/python bench/simulate.py [--days 30] [--rates 1 30 1000] [--interval 60] [--backfill]

For each rate (requests a minute): seconds until the healthy intervals are simulated, seconds until
everything is recorded, samples, size of the text, and with --backfill seconds and size of the
blocks that a real promtool makes of it. One process, one core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from inferslo.sidecar.demo.aggregate import HealthySpans
from inferslo.sidecar.demo.fleet import Fleet, Scenario
from inferslo.sidecar.demo.record import Recorder, backfill, record

MIB = 2**20


def size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / MIB


def measure(rate: float, days: float, interval: float, *, blocks: bool) -> None:
    scenario = Scenario(rate=rate)
    start = time.monotonic()
    spans = HealthySpans(scenario, interval)
    simulated = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "text")
        record(
            Fleet(scenario), recorder, scenario.start + days * 86400,
            interval=interval, spans=spans,
        )  # fmt: skip
        recorded = time.monotonic()
        print(
            f"{rate:6g}/min, {scenario.engines} engines: {simulated - start:6.1f} s healthy"
            f" intervals, {recorded - simulated:6.1f} s recorded, {recorder.samples:,} samples,"
            f" {size(recorder.folder):,.0f} MiB of text"
        )
        if blocks:
            tsdb = Path(folder) / "tsdb"
            backfill(recorder.files, tsdb)
            print(f"        {time.monotonic() - recorded:6.1f} s blocks, {size(tsdb):,.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--rates", type=float, nargs="+", default=[1, 30, 1000])
    parser.add_argument("--interval", type=float, default=60)
    parser.add_argument("--backfill", action="store_true")
    args = parser.parse_args()
    for rate in args.rates:
        measure(rate, args.days, args.interval, blocks=args.backfill)


if __name__ == "__main__":
    main()
