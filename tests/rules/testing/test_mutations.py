"""The generated tests can fail: every mistake that others' rules are known for is made in ours,
and a case of the tests that should see it does.

The classes and where they were seen: Sloth #231 #286 #332 #459, Pyrra #968 #1259 #1611,
slok-operator #24, kubernetes-mixin #382, and rules that clamp the total to 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from pathlib import Path

import pytest
from plans import objective, plan

from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Alert, Format, Group, Recording
from inferslo.rules.testing import cases_of
from inferslo.rules.testing.case import as_yaml
from inferslo.rules.verify import explain, run_tool
from inferslo.rules.warnings import catalogue

PLAN = plan(
    objective("availability", name="answered"),
    objective("ttft", "90", name="first-token", threshold=Decimal(2)),
    warnings=tuple((warning.name, None) for warning in catalogue()),
)
GROUPS = compile_rules(PLAN)
Edit = Callable[[str], str]


def broken(edit: Edit) -> tuple[Group, ...]:
    """The rules with each expression edited; fails if no expression changes."""

    def edited(rule: Recording | Alert) -> Recording | Alert:
        return replace(rule, expr=edit(rule.expr))

    groups = tuple(replace(group, rules=tuple(map(edited, group.rules))) for group in GROUPS)
    assert groups != GROUPS, "the mutation finds nothing to break"
    return groups


def failing(folder: Path, groups: Sequence[Group], only: str | None = None) -> set[str]:
    """The SLOs of which promtool says that these rules fail the tests of the right ones. only: the
    one case to run."""
    rules, tests = folder / "rules.yaml", folder / "rules.test.yaml"
    rules.write_text(write({PLAN.service: groups}, Format.PROMETHEUS), encoding="utf-8")
    cases = [case for case in cases_of(PLAN, GROUPS) if only in (None, case.name)]
    assert cases
    order = [group.name for group in GROUPS]
    tests.write_text(as_yaml(cases, rules.name, PLAN.evaluation.interval, order), encoding="utf-8")
    checked = run_tool(["promtool", "check", "rules", str(rules)])
    assert checked.code == 0, checked.output
    ran = run_tool(["promtool", "test", "rules", str(tests)])
    findings = explain(tests.name, ran.output) if ran.code else []
    assert all(each.problem.startswith("case") for each in findings), findings
    return {each.about for each in findings}


def sub(pattern: str, replacement: str) -> Edit:
    return lambda expr: re.sub(pattern, replacement, expr)


def all_of(*edits: Edit) -> Edit:
    return lambda expr: reduce(lambda text, edit: edit(text), edits, expr)


BAD, TOTAL = (rf"(inferslo:sli_{which}:rate\{{[^}}]*\}})" for which in ("bad", "total"))
OVER = r"\[(1h|6h|30m)\]\)"
LONG = (
    rf"\(sum_over_time\({BAD}{OVER} \* 30 >= \d+\)"
    rf" / \(sum_over_time\({TOTAL}{OVER} \* 30 >= \d+\)"
)
SHORT = rf"sum_over_time\({BAD}{OVER} / \(sum_over_time\({TOTAL}{OVER} > 0\)"
ALL_DOWN = r" unless on \(\) inferslo:engines_down:ratio\{[^}]*\} == 1"
MEAN = r"avg_over_time((\1 / (\3 > 0))[\2:30s])"
COUNTED = r"(inferslo_requests_total\{[^}]*\})"
# What each does to the rules, the case that has to see it, and the SLO of which it is told.
MISTAKES: dict[str, tuple[Edit, str, str]] = {
    "no floor of events": (sub(r" \* (300|30) >= \d+", ""), "quiet night", "answered"),
    "page factor too high": (sub(r">= 0\.06\b", ">= 0.12"), "page burn", "answered"),
    "page factor too low": (sub(r">= 0\.06\b", ">= 0.03"), "slow burn", "answered"),
    "fast factor too high": (sub(r">= 0\.144\b", ">= 0.5"), "fast burn", "answered"),
    "ticket factor too high": (sub(r">= 0\.01\b", ">= 0.02"), "creeping burn", "answered"),
    "factor below 1": (sub(r">= 0\.01\b", ">= 0.004"), "quiet night", "answered"),
    "windows with labels of their own": (
        sub(rf"({LONG})", r'label_replace(\1, "window", "\3", "", "")'), "page burn", "answered",
    ),
    "one spelling of a bound": (
        sub(r'le=~"[^"]*"', 'le="2"'), "bucket spellings", "first-token",
    ),
    "total clamped to 1": (
        sub(rf"\({TOTAL} \* 300 >= \d+\)", r"(clamp_min(\1, 1) * 300)"),
        "low-traffic outage", "first-token",
    ),
    "average of ratios": (
        all_of(sub(LONG, MEAN), sub(SHORT, MEAN)), "quiet night", "answered",
    ),
    "rate of a sum": (
        sub(rf"sum\(rate\({COUNTED}\[5m\]\)\)", r"rate(sum(\1)[5m:15s])"),
        "quiet night", "answered",
    ),
    "muted by any engine of the service": (
        sub(ALL_DOWN, " unless on () (inferslo_engine_up == 0)"), "engines go", "first-token",
    ),
    "muted by somebody else's engine": (
        sub(ALL_DOWN, ' unless on () (inferslo_engine_up{instance="10.9.9.9:9400"} == 0)'),
        "outage", "first-token",
    ),
    "muted by nothing": (sub(ALL_DOWN, ""), "engines go", "first-token"),
    "no failure yet is unknown": (
        sub(rf" or 0 \* sum\({COUNTED}\)", ""), "all is well", "answered",
    ),
    "who gave up is left out": (
        sub(rf"\) \+ \(sum\(rate\({COUNTED}.*$", ")"), "clients give up", "first-token",
    ),
    "no data is no failure": (
        sub(r"^(sum\(rate\(inferslo_requests.*)$", r"(\1) or vector(0)"), "no data", "answered",
    ),
    "a rename is told to nobody": (sub(r" == 3$", " == 4"), "signal missing", "first-token"),
    "a budget may be overspent": (
        sub(r"(budget_remaining:ratio.*) <= 0 and", r"\1 <= -1 and"), "budget", "answered",
    ),
    "a failure or two spend a budget": (
        sub(r"(budget_remaining:ratio.* <= 0) and .*$", r"\1"), "budget", "answered",
    ),
    "incidents do not repeat": (sub("^resets", "0 * resets"), "incidents", "answered"),
}  # fmt: skip


def test_the_right_rules_pass(tmp_path: Path) -> None:
    assert failing(tmp_path, GROUPS) == set()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_known_mistake_is_seen(tmp_path: Path, mistake: str) -> None:
    edit, case, slo = MISTAKES[mistake]
    assert slo in failing(tmp_path, broken(edit), only=case)
