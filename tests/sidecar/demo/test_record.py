"""Simulated scrapes on their way into a real Prometheus: the same series as the sidecar's page."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inferslo.exporters.exposition import parse
from inferslo.exporters.names import ENGINE_UP, TTFT
from inferslo.sidecar.demo.faults import catalogue
from inferslo.sidecar.demo.fleet import Fleet, Scenario
from inferslo.sidecar.demo.record import (
    BackfillError,
    Happening,
    Recorder,
    backfill,
    record,
)
from inferslo.sidecar.demo.sidecars import Sidecars
from inferslo.sidecar.publisher import render

PAIR = Scenario(rate=60, replicas=2, start=1_767_571_200.0 + 10 * 3600)


def test_a_scrape_is_written_as_the_sidecar_would_publish_it(tmp_path: Path) -> None:
    fleet = Fleet(PAIR)
    sidecars = Sidecars(fleet)
    fleet.advance(fleet.now + 300)
    points = sidecars.scrape()["qwen-0:9108"]
    recorder = Recorder(tmp_path, target_labels={"qwen-0:9108": {"revision": "canary"}})
    with recorder.open():
        recorder.write(fleet.now, "qwen-0:9108", points)
    target = {"job": "inferslo", "instance": "qwen-0:9108", "revision": "canary"}
    published = parse(render(points))
    [file] = recorder.files
    written = parse(file.read_bytes())

    def series(page: object, extra: dict[str, str]) -> dict[tuple[str, frozenset[object]], float]:
        assert isinstance(page, type(published))
        return {
            (name, frozenset({**sample.labels, **extra}.items())): sample.value
            for name in page.names
            for sample in page.samples(name)
        }

    expected = series(published, target) | {("up", frozenset(target.items())): 1.0}
    assert series(written, {}) == expected


def dumped(tsdb: Path) -> list[str]:
    (tsdb / "wal").mkdir()  # without one promtool takes it for no database
    command = ["promtool", "tsdb", "dump", str(tsdb)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_promtool_takes_it_and_a_fault_is_where_it_was_put(tmp_path: Path) -> None:
    fleet = Fleet(PAIR)
    recorder = Recorder(tmp_path / "text", keep=lambda family: family in (ENGINE_UP, TTFT))
    kill = Happening(PAIR.start + 600, catalogue()["F3"])
    record(fleet, recorder, PAIR.start + 1800, happenings=[kill])
    backfill(recorder.files, tmp_path / "tsdb")
    up = {
        (float(line.split()[-1]) / 1000 - PAIR.start) / 60: float(line.split()[-2])
        for line in dumped(tmp_path / "tsdb")
        if 'inferslo_engine_up"' in line and 'engine="qwen-0:8000"' in line
    }
    assert sorted(up) == list(range(1, 31))
    assert [minute for minute, value in sorted(up.items()) if value == 0] == [11, 12, 13]


def test_a_file_is_cut_where_prometheus_cuts_blocks(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    cut = 9198 * 194400
    with recorder.open():
        for moment in (cut - 60, cut, cut + 60):
            recorder.write(moment, "a", [])
    assert [file.read_text().count("\n") for file in recorder.files] == [2, 3]


def test_what_promtool_refuses_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_text("no metrics\n", encoding="utf-8")
    with pytest.raises(BackfillError, match=r"promtool, bad\.txt: "):
        backfill([file], tmp_path / "tsdb")
