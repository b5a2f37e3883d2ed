"""`inferslo up --demo` and `--with-prometheus`, as a user starts them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from e2e.processes import wait_until
from starting import PATIENCE, Up, running

from inferslo.sidecar.beside import Beside
from inferslo.sidecar.errors import StartError
from inferslo.sidecar.settings.model import Settings

SLO = """
service: own
match: {model_name: tiny}
objectives: [{name: answered, signal: availability, objective: 99}]
response: [{tier: 1, team: operations, receiver: pager}]
"""
RECEIVERS = 'receivers: {pager: {webhook: {url: "http://127.0.0.1:9/none"}}}\n'


def is_up(url: str) -> bool:
    try:
        return httpx.get(url + "/-/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


# --- the demo ---


def test_the_demo_comes_up_judges_says_what_it_is_and_leaves_nothing(tmp_path: Path) -> None:
    of_a_service = listed(Path("/var/lib/inferslo"))
    with running(tmp_path, "--demo") as up:
        assert up.said.count("SIMULATED: ") == 2  # in the log, and to whoever started it
        assert f" watch --sidecar {up.url}\n" in up.said
        wait_until("it judges", lambda: up.get("/v1/slo")["judged_at"], PATIENCE)
        judged = up.get("/v1/slo")
        assert (judged["service"], judged["simulated"]) == ("simulated-chat", True)
        sources = up.get("/v1/status")["sources"]
        assert all(source["name"].startswith("simulated-") for source in sources)
        index = httpx.get(up.url + "/")
        assert index.headers["x-inferslo-simulated"] == "true"
        assert "<strong>SIMULATED</strong> engines, GPUs" in index.text
        assert 'data-fault="queue-avalanche"' in index.text

        armed = httpx.post(up.url + "/v1/demo/faults/fallback-storm").json()["armed"]
        assert armed["name"] == "fallback-storm"
        wait_until("tier 1 is told", lambda: _tier_1(up), PATIENCE)
        shown = subprocess.run(
            [sys.executable, "-m", "inferslo.sidecar", "status", "--sidecar", up.url],
            capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        assert "SIMULATED: " in shown
        assert httpx.delete(up.url + "/v1/demo/faults").json()["armed"] is None

        assert list(up.scratch.iterdir())
        assert up.stop() == 0
        assert list(up.scratch.iterdir()) == []
        assert not up.state.exists()
        assert listed(Path("/var/lib/inferslo")) == of_a_service


def listed(folder: Path) -> set[Path]:
    return set(folder.iterdir()) if folder.is_dir() else set()


def _tier_1(up: Up) -> bool:
    return any(alert["labels"]["tier"] == "1" for alert in up.get("/v1/slo")["alerts"])


def test_a_port_in_use_is_told_and_nothing_stays(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        up = Up(tmp_path, "--demo", port=taken.getsockname()[1])
        assert up.process.wait(PATIENCE) == 2
    assert "choose another --listen" in up.said
    assert list(up.scratch.iterdir()) == []


@pytest.mark.parametrize("flags", [["--engine", "http://127.0.0.1:8000"], ["--slo", "slo.yaml"]])
def test_a_demo_of_something_real_is_wrong_usage(tmp_path: Path, flags: list[str]) -> None:
    up = Up(tmp_path, "--demo", *flags)
    assert up.process.wait(PATIENCE) == 2
    assert flags[0] in up.said
    assert "Traceback" not in up.said


# --- Prometheus beside it ---


def test_prometheus_judges_the_same_file_and_tells_alertmanager(tmp_path: Path) -> None:
    with running(tmp_path, "--demo", "--with-prometheus") as up:
        alertmanager = up.wait_for(r"Alertmanager: (http://127\.0\.0\.1:\d+)")
        prometheus = up.wait_for(r"Prometheus: (http://127\.0\.0\.1:\d+)")
        assert "no receivers: Alertmanager shows alerts and tells nobody" in up.said
        for url in (alertmanager, prometheus):
            wait_until(url, lambda url=url: is_up(url), PATIENCE)
        rules = httpx.get(prometheus + "/api/v1/rules").json()["data"]["groups"]
        assert "inferslo-simulated-chat-base" in {group["name"] for group in rules}
        assert f"{up.url}/runbooks/InfersloTTFTBurn" in str(rules)
        httpx.post(up.url + "/v1/demo/faults/fallback-storm")
        wait_until(
            "Alertmanager was told by Prometheus",
            lambda: "InfersloFallbackStorm" in httpx.get(alertmanager + "/api/v2/alerts").text,
            PATIENCE,
        )
        assert up.get("/v1/slo")["alertmanager"] is None  # the judge itself tells nobody

        assert up.stop() == 0
        assert not is_up(prometheus)
        assert not is_up(alertmanager)
        assert "ended unexpectedly" not in up.said
        assert list(up.scratch.iterdir()) == []


def test_they_do_not_outlive_a_sidecar_that_was_killed(tmp_path: Path) -> None:
    with running(tmp_path, "--demo", "--with-prometheus") as up:
        servers = [up.wait_for(rf"{name}: (http://\S+)") for name in ("Alertmanager", "Prometheus")]
        for url in servers:
            wait_until(url, lambda url=url: is_up(url), PATIENCE)
        up.stop(signal.SIGKILL)
        for url in servers:
            wait_until(f"{url} is gone", lambda url=url: not is_up(url), PATIENCE)


def test_one_that_ends_is_told_with_the_last_that_it_said(tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    for name in ("prometheus", "prometheus-alertmanager"):
        (broken / name).write_text("#!/bin/sh\necho first\necho no disk left\nexit 3\n")
        (broken / name).chmod(0o755)
    path = f"{broken}:{os.environ['PATH']}"
    with running(tmp_path, "--demo", "--with-prometheus", path=path) as up:
        up.wait_for(
            r"Prometheus ended unexpectedly, with exit code 3. The last it said: no disk left"
        )
        assert up.is_ready()


def test_without_them_it_goes_on_and_says_how_to_install_them(tmp_path: Path) -> None:
    with running(tmp_path, "--demo", "--with-prometheus", path="/nowhere") as up:
        up.wait_for("prometheus and prometheus-alertmanager not found")
        up.wait_for("apt-get install prometheus prometheus-alertmanager")
        assert up.get("/v1/slo")["simulated"] is True


def test_a_real_service_keeps_them_in_the_state_folder_with_its_receivers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = of_files(tmp_path, SLO + RECEIVERS)
    with Beside(settings) as beside:
        beside.start("http://127.0.0.1:9400")
        folder = tmp_path / "state" / "prometheus"
        config = yaml.safe_load((folder / "prometheus.yaml").read_text())
        [job] = config["scrape_configs"]
        assert job["static_configs"] == [{"targets": ["127.0.0.1:9400"]}]
        routes = yaml.safe_load((folder / "alertmanager.yaml").read_text())
        assert "pager" in {receiver["name"] for receiver in routes["receivers"]}
        url = capsys.readouterr().out.partition("Prometheus: ")[2].split()[0]
        wait_until(url, lambda: is_up(url), PATIENCE)
    assert not is_up(url)


def test_the_files_that_are_written_are_right_to_promtool_and_amtool(tmp_path: Path) -> None:
    with Beside(of_files(tmp_path, SLO + RECEIVERS)) as beside:
        beside.start("http://127.0.0.1:9400")
    folder = tmp_path / "state" / "prometheus"
    for command in (
        ["promtool", "check", "config", folder / "prometheus.yaml"],
        ["amtool", "check-config", folder / "alertmanager.yaml"],
    ):
        assert shutil.which(str(command[0]))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "name one with --slo"),
        ({"slo": "slo.yaml", "alertmanager": "http://127.0.0.1:9093"}, "leave out --alertmanager"),
    ],
)
def test_settings_that_it_cannot_go_with(given: Mapping[str, Any], says: str) -> None:
    with pytest.raises(StartError, match=says):
        Beside(Settings(**given))


def of_files(folder: Path, text: str) -> Settings:
    (folder / "slo.yaml").write_text(text)
    (folder / "state").mkdir()
    return Settings(slo=folder / "slo.yaml", slo_history=folder / "state" / "slo.db")
