"""What `inferslo check` does: reads SLO files, and asks an engine whether it can answer them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ...rules.alertmanager.errors import NoReceiversError, TreeError
from ...rules.alertmanager.tree import tree
from ...rules.warnings import of_plan as early_warnings
from ...slo.buckets import EnginePage, Kind
from ...slo.buckets import check as misfits
from ...slo.errors import SpecError, UnreadableError, one_line
from ...slo.explain import explain
from ...slo.load import load_with_places
from ...slo.plan import Plan
from ..printable import printable, printable_lines
from ..reach import reach
from .bounds import page_at, page_of_capture


@dataclass(frozen=True, slots=True)
class Checked:
    """A file, its plan if it makes one, and every problem found, one line each. unreadable: there
    is no such file."""

    file: Path
    plan: Plan | None
    problems: tuple[str, ...]
    unreadable: bool = False


def page_of(
    engine: str | None, capture: Path | None, token_file: str | None, ca_file: str | None
) -> EnginePage | None:
    """None if none is named. Raises SourceError, StartError, SettingsError."""
    if engine is not None and capture is not None:
        raise typer.BadParameter("--engine and --capture say the same thing twice: give one")
    if engine is not None:
        return page_at(*reach(engine, "--engine", token_file, ca_file))
    return page_of_capture(capture) if capture is not None else None


def check_file(file: Path, page: EnginePage | None) -> Checked:
    try:
        plan, document = load_with_places(file)
    except SpecError as error:
        return Checked(file, None, error.problems, isinstance(error, UnreadableError))
    problems = [f"{document.place((key,))}: {problem}" for key, problem in _of_rules(plan)]
    index = {objective.name: n for n, objective in enumerate(plan.objectives)}
    for problem in misfits(plan, page) if page is not None else ():
        key = "threshold" if problem.kind is Kind.BOUND else "signal"
        keys = ("objectives", index[problem.objective], key)
        problems.append(f"{document.place(keys)}: {problem.objective}: {problem.text}")
    return Checked(file, plan, tuple(problems))


def _of_rules(plan: Plan) -> Iterator[tuple[str, str]]:
    """What only the rules know, by key of the file: which early warnings there are, and which
    receivers the tree needs for itself."""
    try:
        early_warnings(plan)
    except SpecError as error:
        yield from (("warnings", problem) for problem in error.problems)
    try:
        tree([plan])
    except NoReceiversError:
        pass  # a file need not say how to reach anybody
    except TreeError as error:
        yield "response", str(error)


def as_text(checked: Checked, *, explained: bool) -> str:
    lines = [printable(problem) for problem in checked.problems]
    if checked.plan is not None and explained:
        lines += printable_lines(explain(checked.plan)).splitlines()
    elif checked.plan is not None and not lines:
        count = len(checked.plan.objectives)
        objectives = "1 objective" if count == 1 else f"{count} objectives"
        lines.append(f"{printable(str(checked.file))}: fine, {objectives}")
    return "".join(f"{line}\n" for line in lines)


def as_json(files: Iterable[Checked]) -> str:
    """[{"file": …, "problems": [{"line": …, "column": …, "message": …}], "notes": […]}]; line and
    column are null where a problem is about the file as a whole."""
    documents = [
        {
            "file": str(checked.file),
            "problems": [_located(str(checked.file), problem) for problem in checked.problems],
            "notes": list(checked.plan.notes) if checked.plan else [],
        }
        for checked in files
    ]
    return json.dumps(documents, indent=2)


def _located(file: str, problem: str) -> dict[str, Any]:
    rest = problem.removeprefix(one_line(file)).removeprefix(": ").lstrip()
    found = re.match(r":(\d+):(\d+): ", rest)
    line, column = map(int, found.groups()) if found else (None, None)
    return {"line": line, "column": column, "message": rest[found.end() :] if found else rest}
