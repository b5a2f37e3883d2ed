"""What docs/ says is what the code does."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_generated_pages_are_up_to_date() -> None:
    """If not: `make docs`, and review the difference."""
    pages = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]
    assert "metrics.md" in pages
    for name, page in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == page(), name
