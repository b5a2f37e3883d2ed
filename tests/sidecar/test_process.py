"""The whole process as a user starts it: bad engines, signals, exit codes, what it logs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from badserver import BadServer, packed_zeros
from fakenvml import FakeNvml, compile_fake
from prometheus_client.parser import text_string_to_metric_families

from inferslo.sidecar import process
from inferslo.sidecar.settings.model import Settings

CAPTURE = Path(__file__).parents[1] / "captures" / "vllm-0.32.0__mid-overload.prom"
PATIENCE = 60.0
NOTHING = "no engine, no gateway and no GPU to watch"


class Running:
    """A sidecar process. `lines` are its log; `value` reads one series of its /metrics."""

    def __init__(
        self, journal: Path, *arguments: str, environment: Mapping[str, str] = os.environ
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "inferslo.sidecar", "sidecar", "--log-format", "json",
                "--listen", f"127.0.0.1:{self.port}", "--events-journal", str(journal),
                *arguments,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={k: v for k, v in environment.items() if not k.startswith("INFERSLO_")},
        )  # fmt: skip

    def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        text = httpx.get(self.url + "/metrics", timeout=10).text
        return {
            (s.name, tuple(sorted(s.labels.items()))): s.value
            for family in text_string_to_metric_families(text)
            for s in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((name, tuple(sorted(labels.items()))))

    def greatest_memory_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1])

    def wait_until_up(self) -> None:
        until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        try:
            return httpx.get(self.url + "/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> tuple[int, list[dict[str, Any]]]:
        self.process.send_signal(sign)
        log = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, [json.loads(line) for line in log.splitlines()]


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, f"did not happen within {PATIENCE:g} s"
        time.sleep(0.1)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(*arguments: str, **options: Any) -> Running:
        running.append(Running(tmp_path / "events.db", *arguments, **options))
        running[-1].wait_until_up()
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


Start = Callable[..., Running]

BAD = {
    "500": "status",
    "401": "unauthorized",
    "html": "not_metrics",
    "json": "not_metrics",
    "big": "too_large",
    "gzip-bomb": "too_large",
    "half": "truncated",
    "slow": "timeout",
    "hang": "timeout",
    "redirect-other": "redirect",
}


def test_every_bad_engine_gets_its_kind_and_the_good_one_is_not_touched(
    start: Start, tmp_path: Path
) -> None:
    packed_zeros()  # made beforehand: making it takes longer than a read may
    with BadServer(tmp_path, CAPTURE.read_bytes()) as server:
        engines = {"good": server.url, "zipped": server.url + "/gzip"}
        engines |= {name: f"{server.url}/{name}" for name in BAD}
        engines |= {"certificate": server.tls_url, "nobody": "http://127.0.0.1:1"}
        flags = [flag for name, url in engines.items() for flag in ("--engine", f"{name}={url}")]
        sidecar = start(*flags, "--read-deadline", "8s")
        kinds = BAD | {"certificate": "tls", "nobody": "refused"}

        def counted(engine: str, kind: str) -> bool:
            errors = sidecar.value("inferslo_source_errors_total", source=engine, kind=kind)
            return errors is not None

        until(lambda: all(counted(engine, kind) for engine, kind in kinds.items()))
        samples = sidecar.samples()
        error_kinds = {
            (dict(labels)["source"], dict(labels)["kind"])
            for name, labels in samples
            if name == "inferslo_source_errors_total"
        }
        published = {dict(labels).get("engine") for name, labels in samples if "ttft" in name}

        assert error_kinds == set(kinds.items())
        assert published == {"good", "zipped"}
        assert samples["inferslo_engine_up", (("engine", "good"),)] == 1.0
        assert all(samples["inferslo_engine_up", (("engine", bad),)] == 0.0 for bad in kinds)
        assert httpx.get(sidecar.url + "/healthz").status_code == 200
        # Fourteen engines, two of which send 200 MB; the sidecar keeps at most 16 MiB of a page.
        assert sidecar.greatest_memory_kib() < 150 << 10
        code, log = sidecar.stop()

    assert code == 0
    down = [line["source"] for line in log if line["event"] == "source down"]
    assert sorted(down) == sorted({*kinds}), "one line per state change, never one per poll"


@pytest.mark.parametrize(
    ("arguments", "warned"),
    [
        (("--gpu", "off"), True),
        (("--gpu", "off", "--host", "off", "--events", "off"), True),
        (("--gpu", "off", "--engine", "http://127.0.0.1:9"), False),
        (("--gpu", "off", "--litellm", "http://127.0.0.1:9"), False),
        (("--gpu", "on"), False),
    ],
)
def test_a_sidecar_that_watches_nothing_says_so_once_and_how_to_name_it(
    arguments: tuple[str, ...], warned: bool, start: Start
) -> None:
    running = start(*arguments)
    assert httpx.get(running.url + "/metrics").status_code == 200

    code, log = running.stop()

    told = [line for line in log if line["event"] == NOTHING]
    assert code == 0
    assert len(told) == warned
    for line in told:
        assert line["level"] == "warning"
        assert "--engine http://HOST:PORT or --litellm http://HOST:PORT" in line["remedy"]


def test_an_event_is_taken_published_and_there_after_a_restart(start: Start) -> None:
    turn = {"type": "agent_turn", "outcome": "success", "app": "shop", "model_name": "m"}
    labels = {"app": "shop", "model_name": "m", "tenant": "", "sla_class": "", "outcome": "success"}
    sidecar = start()
    assert httpx.post(sidecar.url + "/v1/events", json=turn).status_code in (200, 202)
    assert sidecar.value("inferslo_agent_turns_total", **labels) == 1.0
    assert sidecar.stop()[0] == 0

    again = start()

    assert again.value("inferslo_agent_turns_total", **labels) == 1.0


def run_to_the_end(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "inferslo.sidecar",
            "sidecar",
            "--listen",
            "127.0.0.1:0",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | environment,
    )


def test_the_default_journal_gets_its_folder_and_a_named_one_must_have_it(tmp_path: Path) -> None:
    """What is a folder on the way is a file here, so that both end at once, each in its way."""
    (tmp_path / "file").touch()

    default = run_to_the_end(XDG_STATE_HOME=str(tmp_path / "file"))
    named = run_to_the_end("--events-journal", str(tmp_path / "missing" / "events.db"))

    assert (default.returncode, named.returncode) == (2, 2)
    assert "cannot make" in default.stderr
    assert "--events off" in default.stderr
    assert not (tmp_path / "missing").exists()


def test_sigterm_is_a_clean_end_and_ctrl_c_is_130(start: Start) -> None:
    code, log = start("--gpu", "off").stop(signal.SIGTERM)
    assert code == 0
    assert [line["event"] for line in log if line["level"] != "info"] == [NOTHING]

    assert start().stop(signal.SIGINT)[0] == 130


def test_sigterm_ends_an_open_stream_of_the_page_and_is_a_clean_end(start: Start) -> None:
    """What waits longer than uvicorn's patience is cancelled, and that is an error in the log."""
    sidecar = start()
    with httpx.stream("GET", f"{sidecar.url}/v1/stream", timeout=PATIENCE) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: hello"
        code, log = sidecar.stop(signal.SIGTERM)
        list(lines)  # which ends, and is whole
    assert code == 0
    assert [line["event"] for line in log if line["level"] == "error"] == []


def test_a_peer_that_reads_nothing_is_given_up(tmp_path: Path) -> None:
    """By the kernel, and so for every connection: what was sent waits half a minute at most."""
    settings = Settings(listen="127.0.0.1:0")
    with (
        process._listening(settings) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as connection,
    ):
        patience = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert patience == 30_000


def test_sigterm_that_comes_while_it_starts_is_a_clean_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> tuple[()]:
        signal.raise_signal(signal.SIGTERM)
        return ()

    monkeypatch.setattr(process, "add_sources", interrupted)
    settings = Settings(listen="127.0.0.1:0", events=False)

    announced: list[int] = []
    assert process.run(settings, lambda _, port: announced.append(port)) == 0
    assert announced != [0], "the port that it really has"


def test_a_port_in_use_is_one_line_and_exit_code_2(start: Start, tmp_path: Path) -> None:
    first = start()
    second = run_to_the_end("--events", "off", "--listen", f"127.0.0.1:{first.port}")

    assert second.returncode == 2
    (line,) = second.stderr.splitlines()
    assert line == (
        f"inferslo: error: cannot listen on 127.0.0.1:{first.port}: Address already in use;"
        " choose another --listen"
    )


def test_a_journal_that_another_sidecar_uses_is_one_line_and_exit_code_2(
    start: Start, tmp_path: Path
) -> None:
    start()
    second = run_to_the_end("--events-journal", str(tmp_path / "events.db"))

    assert second.returncode == 2
    (line,) = second.stderr.splitlines()
    assert "events.db" in line


@pytest.fixture
def gpus(tmp_path: Path) -> tuple[FakeNvml, dict[str, str]]:
    """Two healthy GPUs of a fake NVML, and the environment in which a process finds them."""
    machine = FakeNvml(tmp_path / "script", gpus=2)
    return machine, machine.environment(compile_fake(tmp_path))


def test_a_gpu_that_hangs_is_dropped_and_delays_nobody(
    start: Start, gpus: tuple[FakeNvml, dict[str, str]]
) -> None:
    machine, environment = gpus
    sidecar = start("--gpu", "on", "--gpu-interval", "1s", environment=environment)
    memory = "inferslo_gpu_memory_used_bytes"
    first = {"gpu": "0", "uuid": "GPU-00000000"}
    second = {"gpu": "1", "uuid": "GPU-00000001"}
    until(lambda: sidecar.value(memory, **first) is not None)
    until(lambda: sidecar.value(memory, **second) is not None)

    machine.hang("gpu0")
    until(lambda: sidecar.value("inferslo_source_up", source="gpu0") == 0.0)

    assert sidecar.value(memory, **first) is None
    assert sidecar.value(memory, **second) is not None
    assert sidecar.value("inferslo_gpu_up", **first) == 0.0
    assert sidecar.value("inferslo_gpu_up", **second) == 1.0
    in_flight = sidecar.value("inferslo_source_in_flight_seconds", source="gpu0")
    assert in_flight is not None
    assert in_flight > 1.0
    assert sidecar.stop()[0] == 0, "a hung driver call does not hold up the end"


def test_a_driver_that_only_a_new_container_can_mend_ends_the_process_with_3(
    start: Start, gpus: tuple[FakeNvml, dict[str, str]]
) -> None:
    machine, environment = gpus
    machine.fail("system", 999)
    sidecar = start("--gpu", "on", "--gpu-interval", "1s", environment=environment)

    log = sidecar.process.communicate(timeout=PATIENCE)[1]

    assert sidecar.process.returncode == 3
    last = json.loads(log.splitlines()[-1])
    assert last["event"] == "only a new process can help"
    assert "container" in last["detail"]
