"""What docs/ and CONTRIBUTING.md say is what the code does."""

import re
import runpy
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_generated_pages_are_up_to_date() -> None:
    """If not: `make docs`, and review the difference."""
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]
    assert "metrics.md" in pages
    for name, page in pages.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page(), name


def test_contributing_names_files_that_exist() -> None:
    paths = re.findall(r"(?<![\w./])[a-z]+/[\w./-]*", CONTRIBUTING)
    named = {path.rstrip(".") for path in paths if (ROOT / path.partition("/")[0]).exists()}
    assert {"exporters/names.py", "tests/golden/"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_contributing_gives_the_reason_for_each_runtime_dependency() -> None:
    _, _, section = CONTRIBUTING.partition("## Dependencies")
    explained = set(re.findall(r"^\| ([a-z0-9-]+) \|", section, re.MULTILINE)) - {"runtime"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert explained == {Requirement(line).name for line in project["dependencies"]}
