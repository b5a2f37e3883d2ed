"""A first SLO file: what three questions and a look at the engine come to.

The text is a file of the catalogue, objective by objective: thresholds moved to bounds that the
engine's histograms have, and what nothing here can judge commented out, with the reason.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from . import catalogue
from .buckets import EnginePage, Kind, check
from .errors import SloError, printable
from .load import load_text
from .quantities import format_duration, parse_duration
from .signals import SIGNALS, Needs
from .spec.values import Name


class Strictness(StrEnum):
    """How many users wait, and what it costs when they wait in vain."""

    RELAXED = "relaxed"  # few wait: the next morning is soon enough
    NORMAL = "normal"
    STRICT = "strict"  # money is at stake


@dataclass(frozen=True, slots=True)
class Answers:
    """kind: of service, a name of the catalogue. on_call: the team that is called. service: its
    name. events: the application posts business events, or a gateway is watched. gpu: GPUs are
    read."""

    kind: str
    strictness: Strictness
    on_call: str
    service: str
    events: bool = False
    gpu: bool = True


class InitError(SloError):
    """No file can be made of these answers; one line says what to do."""


_AVAILABILITY = {
    Strictness.RELAXED: "99 # ours: relaxed",
    Strictness.STRICT: "99.97 # T42: to prove it takes 9,985 requests without an error",
}
_NO_EVENTS = "needs business events of the application (docs/events.md)"
_NO_GPU = "needs the GPU, which is not read here (docs/gpu.md)"
_NO_PROBE = "needs the in-engine probe, which is not on the engine's page"
_ON_CALL = """\
response: # who acts, and when
  - tier: 1
    team: {team}
    receiver: {team}-pager
    tickets: {team}-tickets
  - tier: 2 # as tier 1 is the same team it is not paged twice; of another, remove `when`
    team: {team}
    receiver: {team}-pager
    tickets: {team}-tickets
    when: slow burn
  - tier: 3
    team: {team}
    receiver: {team}-tickets

# Where people read the pages that `inferslo build` puts into runbooks/, to which alerts link:
# runbook_url: https://github.com/ORG/REPO/blob/main/generated/runbooks/{{alert}}.md

# How they are reached; the routing tree needs it. Remove "# " (with the space) from the lines below
# and write your own:
# receivers:
#   {team}-pager:
#     pagerduty: {{routing_key_file: /etc/alertmanager/pagerduty.key}}
#   {team}-tickets:
#     slack: {{api_url_file: /etc/alertmanager/slack.url, channel: "#{team}"}}
#   watchdog: # calls you when it no longer hears that alerting works
#     webhook: {{url: "https://dead-mans-switch.example/ping"}}
"""


def write(answers: Answers, page: EnginePage) -> str:
    """The file's text, which passes `check` by itself and against the engine's page.

    Raises InitError, and NoSuchEntryError of an unknown kind.
    """
    check_name("on-call team", answers.on_call)
    check_name("service", answers.service)
    entry = catalogue.entry(answers.kind)
    before, _, after = entry.text.partition("objectives:\n")
    blocks = [_as_strict(block, answers.strictness) for block in after.strip("\n").split("\n\n")]
    lacking = {block: _lacks(block, answers, page) for block in blocks}
    blocks = [_commented(block, why) if why else block for block, why in lacking.items()]
    _check_not_empty(blocks, answers, next(filter(None, lacking.values()), ""))
    classes = before[before.index("classes:") :].strip("\n") if "classes:" in before else ""
    parts = [_head(before.partition("\n")[0], answers, page), classes]
    fitted = _fitted(parts, blocks, answers.strictness, page)
    _check_not_empty(fitted, answers, "the engine's page does not tell what they need")
    return _joined([*parts, _objectives(fitted), _ON_CALL.format(team=answers.on_call)])


def check_name(what: str, name: str) -> None:
    """Raises InitError. what: is called so."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        why = error.errors()[0]["ctx"]["error"]
        raise InitError(f"{what}: {why}") from None


def _check_not_empty(blocks: list[str], answers: Answers, why: str) -> None:
    if not any(map(_is_active, blocks)):
        raise InitError(f"no objective of {answers.kind} can be judged here: {why}")


def _head(title: str, answers: Answers, page: EnginePage) -> str:
    engine = printable(page.title)
    lines = [
        title,
        f"# Written by `inferslo init` for {engine}, strictness {answers.strictness}.",
        "# Each number is followed by its source (docs/catalogue.md); change what does not fit.",
        f"service: {answers.service}",
        f"owner: {answers.on_call}",
    ]
    models = [json.dumps(model, ensure_ascii=False) for model in page.models]
    if models:
        lines.append(f"match: {{model_name: [{', '.join(models)}]}}")
    return "\n".join(lines)


def _objectives(blocks: list[str]) -> str:
    return "objectives:\n" + "\n\n".join(blocks)


def _joined(parts: list[str]) -> str:
    return "\n\n".join(filter(None, parts))


# --- one objective of a catalogue file, as lines -------------------------------------------------


def _value(block: str, key: str) -> str:
    found = re.search(rf"^  (?:- |  ){key}: (.+?)(?: +#.*)?$", block, re.MULTILINE)
    return found[1] if found else ""


def _with(block: str, key: str, value: str) -> str:
    """The line of the key written anew."""
    return re.sub(rf"(?m)^(    {key}: ).*$", lambda line: line[1] + value, block)


def _is_active(block: str) -> bool:
    return block.startswith("  - ")


def _commented(block: str, why: str) -> str:
    lines = "\n".join(f"  # {line[2:]}" for line in block.splitlines())
    return f"  # {why[:1].upper()}{printable(why[1:])}:\n{lines}"


def _lacks(block: str, answers: Answers, page: EnginePage) -> str:
    """What must be there first; empty if nothing."""
    needs = SIGNALS[_value(block, "signal")].needs
    if _value(block, "class") or _value(block, "prompt_tokens"):
        needs = Needs.PROBE
    if needs is Needs.PROBE and not page.probed:
        return _NO_PROBE
    if needs is Needs.GPU and not answers.gpu:
        return _NO_GPU
    return _NO_EVENTS if needs is Needs.EVENTS and not answers.events else ""


def _as_strict(block: str, strictness: Strictness) -> str:
    if _value(block, "signal") == "availability" and strictness in _AVAILABILITY:
        block = _with(block, "objective", _AVAILABILITY[strictness])
    if strictness is Strictness.RELAXED and not _value(block, "urgency"):
        block += "\n    urgency: office-hours"
    return block


# --- against the engine's page -------------------------------------------------------------------


def _fitted(
    parts: list[str], blocks: list[str], strictness: Strictness, page: EnginePage
) -> list[str]:
    """The blocks so that the page can answer all that are not comments."""
    plan = load_text(_joined([*parts, _objectives(blocks)]))
    problems = {problem.objective: problem for problem in check(plan, page)}
    fitted = []
    for block in blocks:
        problem = problems.get(_value(block, "name")) if _is_active(block) else None
        if problem is None:
            fitted.append(block)
        elif problem.kind is Kind.MISSING:
            fitted.append(_commented(block, problem.text))
        else:
            fitted.append(_moved(block, strictness, page))
    return fitted


def _moved(block: str, strictness: Strictness, page: EnginePage) -> str:
    """The threshold moved to a bound: that below if strict, else that above, where there is one."""
    wish, bounds = _value(block, "threshold"), page.bounds[_value(block, "signal")]
    above = bisect(bounds, float(parse_duration(wish)))
    at = above - 1 if strictness is Strictness.STRICT else above
    bound = Decimal(repr(bounds[min(max(at, 0), len(bounds) - 1)]))
    source = re.search(r"threshold: \S+ +# ([\w-]+)", block)
    says = f"{source[1]} says {wish}, no bound" if source else f"{wish} is no bound"
    whose = f"{says} of {printable(page.title)}"
    return _with(block, "threshold", f"{format_duration(bound)} # {whose}")
