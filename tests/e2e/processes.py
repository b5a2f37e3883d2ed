"""Real servers as subprocesses: started, waited for, stopped with all their children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import httpx

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what: str, probe: Callable[[], T], seconds: float, every: float = 0.2) -> T:
    """What `probe` gives once it is true; TimeoutError, naming `what`, after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := probe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain: {what}")
        time.sleep(every)
    return value


class Server:
    """A server in a process group of its own, so that `kill` leaves no orphan.

    It is ready when `url + health` answers 200. Output goes to `log`.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        url: str,
        health: str,
        log: Path,
        patience: float = 30,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.url = url
        self.log = log
        self._command = [str(part) for part in command]
        self._health = url + health
        self._patience = patience
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def netloc(self) -> str:
        """host:port"""
        return urlsplit(self.url).netloc

    @property
    def pid(self) -> int:
        assert self._process, "not started"
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )
        try:
            wait_until(self._health, self._ready, self._patience)
        except (TimeoutError, RuntimeError) as error:
            self.kill()
            raise RuntimeError(f"{error}; its log ends:\n{self.tail()}") from None

    def _ready(self) -> bool:
        if not self.running:
            raise RuntimeError(f"{self._command[0]} ended before it was ready")
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(self._health, timeout=5).status_code == 200
        return False

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, patience: float = 30) -> int | None:
        """SIGTERM, then its exit status; None if it had to be killed, or never ran."""
        if self._process is None:
            return None
        self._process.terminate()
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(patience)
        self.kill()
        return status

    def kill(self) -> None:
        """SIGKILL to the whole group: what the out-of-memory killer or a lost node does."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
