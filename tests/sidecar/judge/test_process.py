"""A real sidecar that judges: from an engine's page to /v1/slo, over a SIGKILL, and wrong files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.processes import Server, wait_until
from e2e.sidecar import read, sidecar
from metrics_server import serving

CAPTURE = Path(__file__).parents[2] / "captures" / "vllm-0.32.0__3-requests.prom"
EXECUTABLE = Path(sys.executable).with_name("inferslo")
SLO = """\
service: assistant
owner: platform
objectives:
  - {name: answered, signal: availability, objective: 99, min_coverage: 0}
  - {name: first-token, signal: ttft, threshold: 0.5s, objective: 95}
  - {name: turns, signal: agent_turn_success, objective: 98}
response: [{tier: 1, team: operations, receiver: pager}]
receivers: {pager: {webhook: {url: "http://127.0.0.1:1/x"}}}
evaluation: {scrape_interval: 1s, interval: 1s, base: 10s}
"""


@pytest.fixture
def slo_file(tmp_path: Path) -> Path:
    path = tmp_path / "slo.yaml"
    path.write_text(SLO)
    return path


class Engine:
    """A vLLM's page, of which the number of requests that failed is written anew at each `fail`."""

    def __init__(self) -> None:
        self._text = CAPTURE.read_text()
        begin = 'vllm:request_success_total{engine="0",finished_reason="error"'
        [self._line] = [line for line in self._text.splitlines() if line.startswith(begin)]
        self._failed = 0
        self.pages = {"/metrics": self._text.encode(), "/version": b'{"version": "0.32.0"}'}

    def fail(self) -> None:
        self._failed += 5
        line = f"{self._line.rpartition(' ')[0]} {self._failed}.0"
        self.pages["/metrics"] = self._text.replace(self._line, line).encode()


def slo(server: Server) -> dict[str, Any]:
    return httpx.get(f"{server.url}/v1/slo", timeout=10).json()


def answered(server: Server) -> dict[str, Any]:
    return next((o for o in slo(server)["objectives"] if o["name"] == "answered"), {})


def test_it_judges_an_engines_page_and_goes_on_after_a_sigkill(
    slo_file: Path, tmp_path: Path
) -> None:
    flags = ("--gpu", "off", "--slo", str(slo_file), "--slo-history", str(tmp_path / "slo.db"))
    engine = Engine()

    def spent() -> float:
        engine.fail()
        return answered(server).get("budget", {}).get("failures", 0)

    with serving(engine.pages) as url, sidecar(tmp_path, f"e={url}", flags=flags) as server:
        assert httpx.get(f"{server.url}/readyz?slo=all").status_code == 200, "nothing is known"
        wait_until("a budget that is spent", lambda: spent() > 20, 120)
        wait_until("an incident", lambda: spent() and answered(server)["incident"], 30)
        _in_an_incident(server)
        before = answered(server)["budget"]
        server.kill()
        server.start()
        wait_until("judged again", lambda: answered(server), 30)
        after = answered(server)["budget"]
        assert after["failures"] >= before["failures"]
        assert after["coverage"] >= before["coverage"] > 0
        assert not (tmp_path / "slo.db.broken").exists()
        assert server.stop() == 0
    assert "Traceback" not in server.log.read_text()


def _in_an_incident(server: Server) -> None:
    called = [(a["alert"], a["labels"]["tier"]) for a in slo(server)["alerts"]]
    assert ("InfersloAvailabilityBurn", "1") in called
    turns = slo(server)["objectives"][2]
    assert (turns["state"], turns["good_ratio"]) == ("no_traffic", None), "no event was posted"
    assert httpx.get(f"{server.url}/readyz?slo=answered").status_code == 503
    assert httpx.get(f"{server.url}/readyz?slo=turns").status_code == 200
    assert httpx.get(f"{server.url}/readyz").status_code == 200
    assert read(server.url).value("inferslo_slo_incident", slo="answered") == 1
    shown = inferslo("status", "--sidecar", server.url)
    assert shown.returncode == 1
    assert "INCIDENT" in shown.stdout


def inferslo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("INFERSLO_")}
    command = [EXECUTABLE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=clean, timeout=60)


def test_an_slo_file_that_is_not_there_is_one_line_before_anything_starts(tmp_path: Path) -> None:
    history = tmp_path / "slo.db"
    ran = inferslo(
        "sidecar", "--listen", "127.0.0.1:0", "--events", "off", "--slo", tmp_path / "missing.yaml",
        "--slo-history", history,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"inferslo: error: {tmp_path}/missing.yaml cannot be read: No such file or directory\n"
    )
    assert not history.exists()


def test_a_wrong_slo_file_is_told_fault_by_fault_at_its_place(slo_file: Path) -> None:
    slo_file.write_text(SLO.replace("objective: 95", "objective: 195").replace("owner:", "ower:"))
    ran = inferslo("sidecar", "--listen", "127.0.0.1:0", "--events", "off", "--slo", slo_file)
    assert (ran.returncode, ran.stdout) == (2, "")
    places = [
        line.removeprefix(f"inferslo: error: {slo_file}:") for line in ran.stderr.splitlines()
    ]
    assert {place.split(":")[0] for place in places} >= {"2", "5"}
    assert all(place.split(":")[1].isdigit() for place in places)


def test_a_history_in_a_folder_that_is_not_there_is_one_line(slo_file: Path) -> None:
    ran = inferslo(
        "sidecar", "--listen", "127.0.0.1:0", "--events", "off", "--slo", slo_file,
        "--slo-history", slo_file.parent / "none" / "slo.db",
    )  # fmt: skip
    assert ran.returncode == 2
    [line] = ran.stderr.splitlines()
    assert "its folder must be writable" in line


def test_a_history_that_is_another_file_is_one_line_and_the_file_stays(slo_file: Path) -> None:
    ran = inferslo(
        "sidecar", "--listen", "127.0.0.1:0", "--events", "off", "--slo", slo_file,
        "--slo-history", slo_file,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (2, "")
    [line] = ran.stderr.splitlines()
    assert f"{slo_file} is no history of the judge: it is left as it is" in line
    assert slo_file.read_text() == SLO
    assert list(slo_file.parent.iterdir()) == [slo_file]


def test_an_alertmanager_without_an_slo_file_is_refused() -> None:
    ran = inferslo("sidecar", "--listen", "127.0.0.1:0", "--alertmanager", "http://127.0.0.1:9")
    assert ran.returncode == 2
    assert "without an SLO file" in ran.stderr
