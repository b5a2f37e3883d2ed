"""`inferslo up`, as a user starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from e2e.processes import free_port, wait_until

PATIENCE = 60.0


class Up:
    """A running `inferslo up`; `said` is all that it wrote so far."""

    def __init__(
        self, folder: Path, *arguments: str, path: str | None = None, port: int = 0
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.state, self.scratch, self.log = folder / "state", folder / "tmp", folder / "log"
        self.scratch.mkdir()
        own = {"XDG_STATE_HOME": str(self.state), "TMPDIR": str(self.scratch), "HOME": str(folder)}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("INFERSLO_")}
        command = [sys.executable, "-m", "inferslo.sidecar", "up", *arguments]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "--listen", f"127.0.0.1:{self.port}", "--log-format", "text"],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**inherited, **own, **({"PATH": path} if path else {})},
                cwd=folder,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def get(self, path: str) -> Any:
        return httpx.get(self.url + path, timeout=10).json()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.said
        try:
            return httpx.get(self.url + "/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def wait_for(self, pattern: str) -> str:
        """The first group of a pattern in what it says, once it says so."""
        wait_until(pattern, lambda: re.search(pattern, self.said), PATIENCE)
        found = re.search(pattern, self.said)
        assert found
        return found[1] if found.groups() else found[0]

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(sign)
        return self.process.wait(PATIENCE)


@contextmanager
def running(folder: Path, *arguments: str, path: str | None = None) -> Iterator[Up]:
    up = Up(folder, *arguments, path=path)
    try:
        wait_until("it answers", up.is_ready, PATIENCE)
        yield up
    finally:
        if up.process.poll() is None:
            up.stop(signal.SIGKILL)
