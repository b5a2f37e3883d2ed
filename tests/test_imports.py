"""Who may import whom. Read from the source, so that a bad import fails before it is ever run."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent

# What each room may use of ours, its own modules apart. Nothing may use the sidecar.
ROOMS = {
    "slo": (),
    "exporters": (),
    "rules": ("slo", "exporters.names"),
    "dashboards": ("slo", "exporters.names"),
    "sidecar": ("slo", "exporters", "rules", "dashboards"),
}
# Too heavy for a process that stands beside an engine, or the engine itself.
NOT_IN_THE_SIDECAR = ("grafanalib", "pandas", "vllm")
# What runs in other people's processes uses the standard library, itself, and no more than this:
# the probe in the engine's image (`pip install --no-deps inferslo`), the client in the application.
GUESTS = {
    "exporters.probe": ("inferslo.exporters.names", "prometheus_client", "vllm"),
    "sidecar.client": (),
}


class Import(NamedTuple):
    line: int
    name: str  # from the top: `from ..names import TTFT` is inferslo.exporters.names.TTFT
    relative: bool


def imports(file: Path, module: str) -> Iterator[Import]:
    """Every import in `file`, those inside functions and TYPE_CHECKING too."""
    package = ["inferslo", *module.split(".")]
    if file.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, relative=False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: max(len(package) + 1 - node.level, 0)] if node.level else []
            path = [*above, *filter(None, [node.module])]
            for alias in node.names:
                yield Import(node.lineno, ".".join([*path, alias.name]), relative=node.level > 0)


def within(name: str, *tops: str) -> bool:
    return any(name == top or name.startswith(top + ".") for top in tops)


def fault(module: str, what: Import) -> str | None:
    """Why `module` may not import it, or None."""
    room, top = module.partition(".")[0], what.name.partition(".")[0]
    if not what.relative and top in (*ROOMS, "inferslo"):
        return "is absolute: imports inside the product are relative"
    for guest, allowed in GUESTS.items():
        if within(module, guest):
            own = within(what.name, f"inferslo.{guest}", *allowed)
            return None if own or top in sys.stdlib_module_names else f"is too much for {guest}"
    if what.relative:
        usable = (f"inferslo.{name}" for name in (room, *ROOMS[room]))
        return None if within(what.name, *usable) else f"is not for {room}"
    if room in ("exporters", "sidecar") and within(what.name, *NOT_IN_THE_SIDECAR):
        return "is never loaded by the sidecar"
    return None


def faults(root: Path) -> list[str]:
    """One line for each import that breaks a rule in the rooms under `root`."""

    def of(file: Path) -> Iterator[str]:
        path = file.relative_to(root)
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for what in imports(file, module):
            if why := fault(module, what):
                yield f"{path}:{what.line}: {what.name} {why}"

    files = sorted(file for room in ROOMS for file in (root / room).rglob("*.py"))
    return [line for file in files for line in of(file)]


def test_the_rooms_keep_to_who_may_import_whom() -> None:
    assert faults(ROOT) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("exporters/__init__.py", "from ..slo import burn"),
        ("exporters/engines/vllm.py", "from ...sidecar import settings"),
        ("slo/burn.py", "from ..exporters.names import TTFT"),
        ("rules/alerts.py", "from ..exporters.reading import Point"),
        ("rules/alerts.py", "from .. import exporters"),
        ("dashboards/panels.py", "from ..rules import alerts"),
        ("sidecar/app.py", "from inferslo.exporters import names"),
        ("sidecar/app.py", "import slo.burn"),
        ("sidecar/app.py", "from .... import anything"),
        ("sidecar/app.py", "def late():\n    import pandas.core"),
        ("exporters/gpu/nvml.py", "import vllm"),
        ("exporters/probe/middleware.py", "import httpx"),
        ("exporters/probe/middleware.py", "from ..reading import Point"),
        ("sidecar/client.py", "import httpx"),
        ("sidecar/client.py", "from .settings import Settings"),
    ],
)
def test_a_bad_import_is_found(tmp_path: Path, path: str, line: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    assert [found.split(":")[0] for found in faults(tmp_path)] == [path]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("exporters/engines/vllm.py", "from .. import names\nfrom ..reading import Point"),
        ("exporters/engines/__init__.py", "from .vllm import VLLM\nfrom ..names import TTFT"),
        ("rules/alerts.py", "from ..exporters.names import TTFT\nfrom ..slo import burn"),
        ("rules/alerts.py", "from ..exporters import names\nimport pandas"),
        ("sidecar/app.py", "from ..rules import alerts\nfrom . import board\nimport fastapi"),
        ("exporters/probe/plugin.py", "import json\nimport vllm.v1\nfrom ..names import TTFT"),
        ("exporters/probe/plugin.py", "from . import counters\nimport prometheus_client"),
        ("sidecar/client.py", "import urllib.request"),
    ],
)
def test_a_good_import_is_let_be(tmp_path: Path, path: str, line: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    assert faults(tmp_path) == []


def test_the_running_sidecar_does_not_even_look_for_the_heavy_libraries() -> None:
    """Asked of the import system, since here they may not be installed at all."""
    watch = f"""
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in {NOT_IN_THE_SIDECAR}:
            print(name)
sys.meta_path.insert(0, Watch())
import inferslo.sidecar.app, inferslo.sidecar.cli
"""
    python = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True)
    assert (python.returncode, python.stdout, python.stderr) == (0, "", "")
