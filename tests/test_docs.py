"""What docs/ says is what the code does."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_generated_pages_are_up_to_date() -> None:
    generate = runpy.run_path(str(DOCS / "generate.py"))
    committed = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert generate["metrics_page"]() == committed, "run `make docs` and review the difference"
