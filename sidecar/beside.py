"""`inferslo up --with-prometheus`: Prometheus and Alertmanager beside the sidecar, with the rules
of the SLO file that it judges by."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlsplit

import typer

from ..rules.alertmanager.errors import NoReceiversError, TreeError
from ..rules.alertmanager.tree import tree
from ..rules.compile import compile_rules
from ..rules.formats import write
from ..rules.model import Format
from ..rules.yamltext import dump
from ..slo.load import load
from ..slo.plan import NO_RUNBOOKS, Plan
from .errors import StartError
from .judge.start import remembered
from .printable import printable
from .settings.model import Settings

_FOLDER = "prometheus"
_PROMETHEUS, _ALERTMANAGER = ("prometheus",), ("prometheus-alertmanager", "alertmanager")
_PATIENCE = 10.0  # seconds for one to stop
_MISSING = """\
Going on without Prometheus and Alertmanager: {missing} not found. On Debian or Ubuntu:
  apt-get install prometheus prometheus-alertmanager"""
_NOBODY = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
# The server ends when its standard input does, so that it never outlives us, however we end.
_TIED = """\
exec 3<&0
"$@" 3<&- & server=$!
{ read -r _ <&3; kill "$server" 2>/dev/null; } & reader=$!
wait "$server"; code=$?
kill "$reader" 2>/dev/null
exit "$code"
"""


class Beside:
    """Both servers, from start() to the end of the `with`.

    Raises StartError for settings without an SLO file, or that tell another Alertmanager: the
    judge and Prometheus would then both tell of the same.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.slo is None:
            raise StartError("--with-prometheus compiles an SLO file: name one with --slo")
        if settings.alertmanager:
            raise StartError(
                "--with-prometheus starts an Alertmanager, which Prometheus tells: leave out"
                " --alertmanager, which the judge would tell"
            )
        self._plan = load(settings.slo)
        self._folder = settings.slo_history.parent / _FOLDER
        self._servers: list[_Server] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.stop()

    def start(self, base: str) -> None:
        """base: URL of the sidecar. Says where they are, or how to install them."""
        found = {names[0]: _found(names) for names in (_PROMETHEUS, _ALERTMANAGER)}
        if missing := [name for name, path in found.items() if path is None]:
            typer.echo(_MISSING.format(missing=" and ".join(missing)), err=True)
            return
        if self._plan.runbook_url == NO_RUNBOOKS:  # the sidecar has them
            self._plan = replace(self._plan, runbook_url=f"{base}/runbooks/{{alert}}")
        alertmanager, prometheus = _port(9093), _port(9090)
        self._write(urlsplit(base).netloc, alertmanager)
        self._run(
            "Alertmanager", found[_ALERTMANAGER[0]], alertmanager,
            f"--config.file={self._folder / 'alertmanager.yaml'}",
            f"--storage.path={self._folder / 'alertmanager'}",
            "--cluster.listen-address=",
        )  # fmt: skip
        self._run(
            "Prometheus", found[_PROMETHEUS[0]], prometheus,
            f"--config.file={self._folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--storage.tsdb.retention.time={round(remembered(self._plan))}s",
        )  # fmt: skip

    def _write(self, sidecar: str, alertmanager: int) -> None:
        rules = write({self._plan.service: compile_rules(self._plan)}, Format.PROMETHEUS)
        texts = {
            "rules.yaml": rules,
            "prometheus.yaml": dump(_prometheus(self._plan, sidecar, alertmanager)),
            "alertmanager.yaml": dump(_alertmanager(self._plan)),
        }
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, text in texts.items():
                (self._folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StartError(f"cannot write {self._folder}: {error.strerror}") from error

    def _run(self, name: str, program: str | None, port: int, *flags: str) -> None:
        assert program is not None  # noqa: S101
        address = f"127.0.0.1:{port}"
        log = self._folder / f"{name.lower()}.log"
        self._servers.append(
            _Server(name, [program, *flags, f"--web.listen-address={address}"], log)
        )
        typer.echo(f"{name}: http://{address}  (log: {printable(str(log))})")


class _Server:
    """One that runs until stop(); says so if it ends before."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self._name = name
        self._log = log
        self._stopping = False
        with log.open("wb") as output:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", _TIED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us, who stop it in order
            )
        threading.Thread(target=self._watch, name=f"watch-{name}", daemon=True).start()

    def stop(self) -> None:
        self._stopping = True
        stdin: IO[bytes] | None = self._process.stdin
        if stdin is not None:
            stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _watch(self) -> None:
        code = self._process.wait()
        if not self._stopping:
            lines = self._log.read_text(errors="replace").splitlines() or ["nothing"]
            typer.echo(
                f"{self._name} ended unexpectedly, with exit code {code}. The last it said:"
                f" {printable(lines[-1])}",
                err=True,
            )


def _found(names: Sequence[str]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


def _port(usual: int) -> int:
    """The usual one, where whoever asks looks for it; another if it is taken."""
    for port in (usual, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise StartError("no port of 127.0.0.1 is free")


def _prometheus(plan: Plan, sidecar: str, alertmanager: int) -> dict[str, Any]:
    every = {
        "scrape_interval": f"{plan.evaluation.scrape_interval}s",
        "evaluation_interval": f"{plan.evaluation.interval}s",
    }
    peers = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]
    return {
        "global": every,
        "rule_files": ["rules.yaml"],
        "alerting": {"alertmanagers": peers},
        "scrape_configs": [{"job_name": "inferslo", "static_configs": [{"targets": [sidecar]}]}],
    }


def _alertmanager(plan: Plan) -> dict[str, Any]:
    """The routes to the file's receivers; where it has none, alerts are shown and nobody told."""
    try:
        return tree([plan])
    except NoReceiversError:
        typer.echo("The SLO file has no receivers: Alertmanager shows alerts and tells nobody.")
        return _NOBODY
    except TreeError as error:
        raise StartError(str(error)) from error
