"""Everything that is made of SLO files, as files: relative path → text.

Every file says in its first line that it was made, so that what is made can be told from what
somebody wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ..slo.errors import SpecError
from ..slo.plan import NO_RUNBOOKS, Plan
from .alertmanager.errors import NoReceiversError, TreeError
from .alertmanager.routing import routing_tests
from .alertmanager.tree import doubts, tree
from .compile import compile_rules
from .formats import FILES, resource_name, write
from .model import Format, Group
from .runbooks import pages
from .testing import rule_tests
from .yamltext import dump

MARK = "Made by `inferslo build`"
RULES = FILES[Format.PROMETHEUS]
ALERTMANAGER, ROUTING_TEST = "alertmanager.yaml", "routing.test.yaml"
RUNBOOKS = "runbooks"
_NO_SERVICE = (
    "{0}: each service has its own runbooks, and runbook_url does not tell which: write"
    " https://…/runbooks/{{service}}/{{alert}}.md"
)
_NO_RUNBOOKS = (
    "{0}: its alerts link to no runbook: put runbooks/ where people read it, and write"
    " runbook_url: https://…/{{alert}}.md"
)


@dataclass(frozen=True, slots=True)
class Built:
    """files: relative path → text. notes: what was left out and why, for the user."""

    files: Mapping[str, str]
    notes: tuple[str, ...]


def build(plans: Sequence[Plan], format: Format = Format.PROMETHEUS) -> Built:
    """The files of these services together; `rules.yaml` in every format, for promtool tests it.

    Raises SpecError if two files are of one service, or contradict each other.
    """
    _check_services(plans)
    if format is Format.OPERATOR:
        _check_resources(plans)
    compiled = {plan.service: compile_rules(plan) for plan in plans}
    files = {
        FILES[each]: write(compiled, each)
        for each in dict.fromkeys((Format.PROMETHEUS, format))
    }  # fmt: skip
    for plan in plans:
        files[_tests_of(plan, plans)] = rule_tests(plan, compiled[plan.service])
        files |= {f"{_runbooks_of(plan, plans)}/{page}": text for page, text in pages(plan).items()}
    notes = [note for plan in plans if (note := _unlinked(plan, plans))]
    try:
        files |= _routing(plans, [group for groups in compiled.values() for group in groups])
        notes += doubts(plans)
    except NoReceiversError as error:
        notes.append(str(error))
    except TreeError as error:
        raise SpecError([str(error)]) from error
    services = ", ".join(compiled)
    marked = {path: _marked(path, text, services) for path, text in files.items()}
    return Built(marked | _with_sums(marked), tuple(notes))


def _check_services(plans: Sequence[Plan]) -> None:
    counts = Counter(plan.service for plan in plans)
    if several := [service for service, count in counts.items() if count > 1]:
        raise SpecError(
            [f"service {service} is in more than one file: merge them" for service in several]
        )


def _check_resources(plans: Sequence[Plan]) -> None:
    """Of two Kubernetes objects of one name the second would replace the first."""
    names: dict[str, str] = {}
    for plan in plans:
        other = names.setdefault(resource_name(plan.service), plan.service)
        if other != plan.service:
            raise SpecError(
                [f"services {other} and {plan.service} would be one PrometheusRule: rename one"]
            )


def _tests_of(plan: Plan, plans: Sequence[Plan]) -> str:
    """promtool runs a file of tests at one interval, which is a service's own."""
    return "rules.test.yaml" if len(plans) == 1 else f"rules.{plan.service}.test.yaml"


def _runbooks_of(plan: Plan, plans: Sequence[Plan]) -> str:
    """The same alert has a page for each service: thresholds, commands and teams differ."""
    return RUNBOOKS if len(plans) == 1 else f"{RUNBOOKS}/{plan.service}"


def _unlinked(plan: Plan, plans: Sequence[Plan]) -> str:
    """What to say if alerts do not lead to their runbooks."""
    url = plan.runbook_url
    if url == NO_RUNBOOKS:
        return _NO_RUNBOOKS.format(plan.service)
    if len(plans) == 1 or plan.service in url or "{service}" in url:
        return ""
    return _NO_SERVICE.format(plan.service)


def _routing(plans: Sequence[Plan], groups: Sequence[Group]) -> Mapping[str, str]:
    return {ALERTMANAGER: dump(tree(plans)), ROUTING_TEST: routing_tests(groups, plans)}


def _marked(path: str, text: str, services: str) -> str:
    line = f"{MARK} from the SLO file of {services}: change it there."
    return f"<!-- {line} -->\n{text}" if path.endswith(".md") else f"# {line}\n{text}"


def _with_sums(files: Mapping[str, str]) -> dict[str, str]:
    """Tests say of which bytes they are, so that `verify` can tell what was edited by hand."""
    return {
        path: text.replace("\n", f"\n# {_sum(tested, files[tested])}\n", 1)
        for path, text in files.items()
        if path.endswith(".test.yaml")
        for tested in [ALERTMANAGER if path == ROUTING_TEST else RULES]
    }


def _sum(path: str, text: str) -> str:
    return f"Tests {path} of SHA-256 {sha256(text.encode()).hexdigest()}."


def is_tested(tests: str, path: str, text: str) -> bool:
    """Whether tests are of this very text of a file; also if they are of another file."""
    return f"# Tests {path} of" not in tests or _sum(path, text) in tests


def is_made(text: str) -> bool:
    """Whether a file is one of ours."""
    return MARK in text.partition("\n")[0]


def drift(built: Built, found: Mapping[str, str]) -> Mapping[str, str]:
    """What differs between what was built and what lies there: path → what is the matter.

    found: relative path → text of the files there; those of others are nobody's business.
    """
    changes = {
        path: "differs" if path in found else "missing"
        for path, text in built.files.items()
        if found.get(path) != text
    }
    gone = (path for path, text in found.items() if path not in built.files and is_made(text))
    return changes | dict.fromkeys(gone, "no longer made")
