"""The demo as the running sidecar has it: a thread that plays the world, and what it hands over."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter

from ....exporters.reading import Source
from ...errors import StartError
from ...events.business import Business
from ...page.html import Html
from ...settings.load import Loaded
from ...settings.model import FIELDS, Settings, flag
from ...settings.targets import Engine
from .api import demo_router
from .pace import TICK, Pace
from .panel import panel
from .reports import Reporter
from .servers import EngineServer, listeners
from .sources import sources
from .texts import BANNER, HEADER, SIMULATED
from .world import World

_REPORT = 1.0  # seconds between two posts of events
_POLL = 1.0
_PATIENCE = 5.0
# What would mix the real with the simulated, or is the demo's own.
_NOT_WITH = (
    "engines", "litellm", "engine_token_file", "litellm_token_file", "slo", "slo_history",
    "events", "events_journal", "gpu", "gpu_expected", "host", "host_root", "alertmanager",
    "alertmanager_token_file",
)  # fmt: skip


class Stage:
    """The simulated world, played from start() to stop()."""

    simulated = SIMULATED
    banner = BANNER
    headers = (HEADER,)

    def __init__(self) -> None:
        self._world = World(time.time())
        self._pace = Pace(self._world)
        self._servers = [
            EngineServer(self._world, index, listener) for index, listener in enumerate(listeners())
        ]
        self._reporter = Reporter(self._world)
        self._business: Business | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo", daemon=True)

    @property
    def engines(self) -> tuple[Engine, ...]:
        """To be watched as any others."""
        return tuple(
            Engine(url=server.url, name=self._world.replica(index).name)
            for index, server in enumerate(self._servers)
        )

    @property
    def router(self) -> APIRouter:
        return demo_router(self._pace)

    def sources(self) -> Iterable[Source]:
        return sources(self._world)

    def panel(self) -> Html:
        """The faults as buttons."""
        return panel(self._world)

    def report_to(self, business: Business | None) -> None:
        """Whom the simulated application tells of its turns, from now on."""
        self._business = business

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        asyncio.run(self._play())

    async def _play(self) -> None:
        serving = [asyncio.create_task(server.keep(self._stop.is_set)) for server in self._servers]
        reported = self._world.now
        while not self._stop.is_set():
            self._pace.tick()
            if self._business is not None and self._world.now - reported >= _REPORT:
                reported = self._world.now
                self._reporter.post(self._business)
            await asyncio.sleep(TICK)
        await asyncio.gather(*serving)


@contextmanager
def staged(loaded: Loaded) -> Iterator[tuple[Stage, Settings]]:
    """A demo that plays, and the settings to watch it by. What it keeps is gone with it.

    Raises StartError for settings that a demo cannot have.
    """
    _refuse(loaded)
    with tempfile.TemporaryDirectory(prefix="inferslo-demo-") as folder:
        stage = Stage()
        stage.start()
        try:
            yield stage, _settings(loaded, stage, Path(folder))
        finally:
            stage.stop()


def _refuse(loaded: Loaded) -> None:
    given = [name for name in FIELDS if name in loaded.origins and name in _NOT_WITH]
    if given:
        where = ", ".join(
            flag(name) if loaded.origins[name] == flag(name) else f"{name} ({loaded.origins[name]})"
            for name in given
        )
        raise StartError(
            f"--demo has engines, an SLO file and a state of its own, so it cannot have {where}:"
            " leave that out, or leave out --demo"
        )


def _settings(loaded: Loaded, stage: Stage, folder: Path) -> Settings:
    slo = folder / "slo.yaml"
    slo.write_text(
        files(__package__).joinpath("slo.yaml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    own = {
        "engines": stage.engines, "slo": slo, "slo_history": folder / "slo.db",
        "events_journal": folder / "events.db", "gpu": "off", "host": False,
    }  # fmt: skip
    if "poll_interval" not in loaded.origins:
        own["poll_interval"] = _POLL
    return loaded.settings.model_copy(update=own)
