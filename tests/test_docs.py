"""What docs/ and CONTRIBUTING.md say is what the code does."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
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


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    kept = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in kept}


def test_no_link_of_the_docs_is_dead() -> None:
    dead, seen = [], 0
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if "://" in link:
                continue
            seen += 1
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            lacks = anchor and target.suffix == ".md" and anchor not in anchors(target)
            if not target.exists() or lacks:
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert dead == []
    assert seen > 50


# @MEASURED@, **SECONDS_TO_PAGE**, SLO_MB MB: a name in capitals where a figure belongs
PLACEHOLDER = re.compile(
    r"@[A-Z0-9_]+@|\*\*[A-Z0-9]+_[A-Z0-9_]+\b|\bTODO\b"
    r"|\b[A-Z0-9]+_[A-Z0-9_]+ (?:[kMG]?B|ms|s|min|%)(?!\w)"
)


@pytest.mark.parametrize("text", ["@P99@ s", "takes SLO_MB MB on top", "**TO_PAGE s**", "TODO"])
def test_a_figure_that_is_still_to_be_filled_in_is_found(text: str) -> None:
    assert PLACEHOLDER.search(text)


def test_no_figure_is_still_to_be_filled_in() -> None:
    for page in PAGES:
        assert PLACEHOLDER.findall(page.read_text(encoding="utf-8")) == [], page.name
