"""What a user installs is what the tree holds, under one name."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ROOMS = ("dashboards", "exporters", "rules", "sidecar", "slo")


def packages(root: Path) -> list[str]:
    """Each folder of the rooms with an __init__.py, by the name it is imported under."""
    folders = (file.parent for room in ROOMS for file in (root / room).rglob("__init__.py"))
    return sorted(".".join(["inferslo", *folder.relative_to(root).parts]) for folder in folders)


def test_every_package_is_listed() -> None:
    """One that is not works in the checkout and is missing from the wheel."""
    assert PROJECT["tool"]["setuptools"]["packages"] == packages(ROOT)


def test_a_new_package_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "exporters" / "new").mkdir(parents=True)
    (tmp_path / "exporters" / "new" / "__init__.py").touch()
    assert packages(tmp_path) == ["inferslo.exporters.new"]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("runtime", PROJECT["project"]["dependencies"]),
        ("dev", PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]),
        ("litellm", PROJECT["dependency-groups"]["litellm"]),
    ],
)
def test_the_lock_satisfies_pyproject(lock: str, wanted: list[str]) -> None:
    """After a change of dependencies: `make lock`."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([a-z0-9-]+)(?:\[.*])?==(\S+)", text, re.MULTILINE))

    def is_met(requirement: Requirement) -> bool:
        version = locked.get(canonicalize_name(requirement.name))
        return version is not None and version in requirement.specifier

    assert [line for line in wanted if not is_met(Requirement(line))] == []


def build(tree: Path, out: Path, *options: str) -> list[Path]:
    """Build without isolation: with the locked setuptools, and offline."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out)]
    built = subprocess.run([*command, *options, str(tree)], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy: what an earlier build left in the checkout must not help."""
    copy = tmp_path_factory.mktemp("tree")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, copy)
    return copy


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    [wheel] = build(tree, tmp_path_factory.mktemp("wheel"), "--wheel")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_file_of_the_rooms_and_no_other(tree: Path, wheel: Path) -> None:
    files = (file for room in ROOMS for file in (tree / room).rglob("*") if file.is_file())
    made = tree / "rules" / "generated"  # to be reviewed, not to be shipped
    expected = {f"inferslo/{f.relative_to(tree)}" for f in files if made not in f.parents}
    assert {name for name in contents(wheel) if ".dist-info/" not in name} == expected


def test_every_room_is_marked_as_typed(wheel: Path) -> None:
    assert {f"inferslo/{room}/py.typed" for room in ROOMS} <= contents(wheel).keys()


def test_the_sdist_builds_the_same_wheel(tree: Path, wheel: Path, tmp_path: Path) -> None:
    through_sdist, sdist = build(tree, tmp_path)
    assert sdist.name.endswith(".tar.gz")
    assert contents(through_sdist) == contents(wheel)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin/ of an environment with the wheel in it, and the dependencies lent by ours."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, "install", "-q", "--no-index", "--no-deps", str(wheel)], check=True)
    [site_packages] = home.glob("lib/python*/site-packages")
    # A path named in a .pth file is searched last, and its own .pth files, of which ours makes the
    # checkout importable, are not read.
    lent = Path(pytest.__file__).parent.parent
    (site_packages / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    return home / "bin"


def run(*command: str | Path, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def test_the_installed_command_runs_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    where = "import inferslo.exporters; print(inferslo.exporters.__file__)"
    assert Path(run(installed / "python", "-c", where, cwd=tmp_path)).is_relative_to(
        installed.parent
    )
    version = run(installed / "inferslo", "version", cwd=tmp_path)
    assert importlib.metadata.version("inferslo") in version
