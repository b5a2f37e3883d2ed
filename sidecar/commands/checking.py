"""What `inferslo check` does: reads SLO files, and asks an engine whether it can answer them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ...exporters.names import LABELS
from ...rules.alertmanager.errors import NoReceiversError, TreeError
from ...rules.alertmanager.tree import doubts, tree
from ...rules.warnings import of_plan as early_warnings
from ...slo.buckets import MODEL, EnginePage, Kind, Problem, not_asked
from ...slo.buckets import check as misfits
from ...slo.errors import SpecError, UnreadableError, one_line
from ...slo.explain import explain
from ...slo.load import load_with_places
from ...slo.plan import Plan
from ...slo.signals import Needs
from ..printable import printable, printable_lines
from ..reach import reach
from .bounds import page_at, page_of_capture

_OF_TARGETS = {"job", "instance"}  # what Prometheus puts on every series
_ELSEWHERE = {
    Needs.EVENTS: "business events",
    Needs.GPU: "GPU",
    Needs.PROMETHEUS: "your own query",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A file, its plan if it makes one, and every problem found, one line each. notes: what
    to know besides the plan's own. asked: an engine's page was. unreadable: there is no such
    file."""

    file: Path
    plan: Plan | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    asked: bool = False
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
        is_unreadable = isinstance(error, UnreadableError)
        return Checked(file, None, error.problems, unreadable=is_unreadable)
    problems = [f"{document.place((key,))}: {problem}" for key, problem in _of_rules(plan)]
    for problem in misfits(plan, page) if page is not None else ():
        about = f"{problem.objective}: " if problem.objective else ""
        problems.append(f"{document.place(_keys(plan, problem))}: {about}{problem.text}")
    notes = (*_of_labels(plan), *_of_receivers(plan))
    return Checked(file, plan, tuple(problems), notes, page is not None)


def _keys(plan: Plan, problem: Problem) -> tuple[str | int, ...]:
    if problem.kind is Kind.MATCH:
        return "match", MODEL
    names = [objective.name for objective in plan.objectives]
    key = "threshold" if problem.kind is Kind.BOUND else "signal"
    return "objectives", names.index(problem.objective), key


def _of_labels(plan: Plan) -> Iterator[str]:
    """A label of `match` that no series of a sidecar has must come from Prometheus."""
    for label, _ in plan.selection.match:
        if label not in LABELS | _OF_TARGETS:
            near = difflib.get_close_matches(label, LABELS, n=1, cutoff=0.8)
            hint = f", or did you mean {near[0]}?" if near else ""
            yield (
                f"match: the sidecar puts no label {label} on its series: Prometheus has to (labels"
                f" of the target, relabelling){hint}"
            )


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


def _of_receivers(plan: Plan) -> Iterator[str]:
    return doubts([plan]) if plan.response else iter(())


def as_text(checked: Checked, *, explained: bool) -> str:
    lines = [printable(problem) for problem in checked.problems]
    if checked.plan is not None and explained:
        lines += printable_lines(explain(checked.plan)).splitlines()
    elif checked.plan is not None and not lines:
        count = len(checked.plan.objectives)
        objectives = "1 objective" if count == 1 else f"{count} objectives"
        lines.append(f"{printable(str(checked.file))}: fine, {objectives}{_asked(checked)}")
    lines += [f"note: {printable(note)}" for note in checked.notes]
    return "".join(f"{line}\n" for line in lines)


def _asked(checked: Checked) -> str:
    """How far "fine" goes."""
    if checked.plan is None or not checked.asked:
        return "; no engine was asked whether it can answer them: add --engine URL"
    others = not_asked(checked.plan).items()
    parts = [f"{', '.join(names)} ({_ELSEWHERE[need]})" for need, names in others]
    return f"; not asked, as an engine does not know: {'; '.join(parts)}" if parts else ""


def as_json(files: Iterable[Checked]) -> str:
    """[{"file": …, "problems": [{"line": …, "column": …, "message": …}], "notes": […]}]; line and
    column are null where a problem is about the file as a whole."""
    documents = [
        {
            "file": str(checked.file),
            "problems": [_located(str(checked.file), problem) for problem in checked.problems],
            "notes": [*(checked.plan.notes if checked.plan else ()), *checked.notes],
        }
        for checked in files
    ]
    return json.dumps(documents, indent=2)


def _located(file: str, problem: str) -> dict[str, Any]:
    rest = problem.removeprefix(one_line(file)).removeprefix(": ").lstrip()
    found = re.match(r":(\d+):(\d+): ", rest)
    line, column = map(int, found.groups()) if found else (None, None)
    return {"line": line, "column": column, "message": rest[found.end() :] if found else rest}
