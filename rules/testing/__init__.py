"""Unit tests of the compiled rules, generated with them: promtool runs them.

They are told as stories (what happens to the service) with checks (who is told of it), and read
nothing of a rule but its alerts' names and labels, so that a wrong expression cannot prove itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...slo.plan import Plan
from ..model import Alert, Group
from ..naming import WATCHDOG
from ..warnings import SLO as WARNINGS
from . import burning, causes, latency, quietness
from .case import Case, as_yaml
from .series import selector
from .stage import stages
from .world import worlds

RULE_FILE = "rules.yaml"


class UntestedError(Exception):
    """Alerts that no test makes fire: a mistake in the generator, not in a file."""


def rule_tests(plan: Plan, groups: Sequence[Group]) -> str:
    """The text of rules.test.yaml. Raises UntestedError."""
    cases = cases_of(plan, groups)
    if left := untested(groups, cases):
        raise UntestedError(f"no test makes these alerts fire: {', '.join(left)}")
    return as_yaml(cases, RULE_FILE, plan.evaluation.interval, [group.name for group in groups])


def cases_of(plan: Plan, groups: Sequence[Group]) -> list[Case]:
    """Every story, on every world of the plan that it can be told on."""
    alerts = _alerts(groups)
    all_ = stages(worlds(plan), alerts)
    each_world = (
        burning.outage, burning.page_burn, burning.fast_burn, burning.slow_burn,
        burning.creeping_burn, quietness.night, quietness.trickle, quietness.idle,
        latency.spellings, latency.gave_up,
    )  # fmt: skip
    cases = [case for stage in all_ for story in each_world for case in story(stage)]
    for of_all in (burning.spent, burning.repeats, quietness.missing, quietness.unknown):
        cases += of_all(all_)
    cases += causes.engines(all_[0])
    cases += causes.healthy(all_[0], [each for each in alerts if each.alert == WATCHDOG.name])
    return cases


def untested(groups: Iterable[Group], cases: Iterable[Case]) -> list[str]:
    """Alerts that no case makes fire. Early warnings need not: all must be quiet while all is well,
    and what makes each of them fire is tested with their catalogue."""
    fired = {
        _identity(check.alert)
        for case in cases
        for check in case.checks
        if check.alert is not None and check.expected is not None
    }
    owed = (_identity(alert) for alert in _alerts(groups) if alert.labels["slo"] != WARNINGS)
    return [name for name in owed if name not in fired]


def _identity(alert: Alert) -> str:
    return selector(alert.alert, alert.labels)


def _alerts(groups: Iterable[Group]) -> list[Alert]:
    return [rule for group in groups for rule in group.rules if isinstance(rule, Alert)]
