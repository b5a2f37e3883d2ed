"""The tests of a tree: every alert that the rules can make, and the receiver it must reach.

They are written in the form that amlint reads too (`amlint test alertmanager.yaml
routing.test.yaml`); here amtool judges, which is Alertmanager's own code.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from ...slo.plan import Plan, Tier
from ..model import Alert, Group
from ..naming import WATCHDOG
from ..yamltext import dump
from .api import Matcher
from .errors import TreeError
from .tree import WATCHDOG_RECEIVER, fallback_of, receiver_of

_TIMEOUT = 60  # seconds for one question to amtool
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    labels: Mapping[str, str]
    expect: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Misrouted:
    """A case that fails. got: receivers, or what amtool said instead."""

    case: Case
    got: str

    def __str__(self) -> str:
        expected = ",".join(self.case.expect)
        return f"{self.case.name}: goes to {self.got or 'nobody'}, not to {expected}"


def routing_tests(groups: Iterable[Group], plans: Sequence[Plan]) -> str:
    """The text of routing.test.yaml. Raises TreeError for an alert that nobody would answer."""
    by_service = {plan.service: plan for plan in plans}
    alerts = [rule for group in groups for rule in group.rules if isinstance(rule, Alert)]
    cases = [*_cases(alerts, by_service), *map(_unknown, plans)]
    written = [
        {"name": case.name, "labels": dict(case.labels), "expect": list(case.expect)}
        for case in cases
    ]
    return dump(written)


def read_tests(text: str) -> list[Case]:
    """Raises TreeError if the text is no list of tests."""
    try:
        return [
            Case(str(each["name"]), dict(each["labels"]), tuple(each["expect"]))
            for each in yaml.safe_load(text)
        ]
    except (yaml.YAMLError, TypeError, KeyError, ValueError):
        raise TreeError("this is no list of routing tests: build it anew") from None


def check_routing(config: str, tests: str) -> list[Misrouted]:
    """Asks amtool about each test; [] if all alerts reach their receivers. config, tests: the
    texts of alertmanager.yaml and routing.test.yaml. Raises TreeError if it cannot be asked."""
    cases = read_tests(tests)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        file = Path(folder) / "alertmanager.yaml"
        file.write_text(config, encoding="utf-8")
        answers = pool.map(lambda case: _ask(file, case.labels), cases)
        return [
            Misrouted(case, got)
            for case, got in zip(cases, answers, strict=True)
            if got != ",".join(case.expect)
        ]


def _ask(config: Path, labels: Mapping[str, str]) -> str:
    named = [str(Matcher(label, value)) for label, value in labels.items()]
    command = ["amtool", "config", "routes", "test", f"--config.file={config}", *named]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed tool; labels are arguments, not a shell's
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except FileNotFoundError:
        raise TreeError(
            "amtool is not installed, and it judges the routes: apt-get install"
            " prometheus-alertmanager (Debian, Ubuntu)"
        ) from None
    except subprocess.TimeoutExpired:
        raise TreeError(f"amtool did not answer within {_TIMEOUT} s") from None
    return done.stdout.strip() if done.returncode == 0 else " ".join(done.stderr.split())


def _cases(alerts: Iterable[Alert], by_service: Mapping[str, Plan]) -> Iterator[Case]:
    seen: set[tuple[tuple[str, str], ...]] = set()
    for alert in alerts:
        labels = {"alertname": alert.alert, **{k: str(v) for k, v in alert.labels.items()}}
        if (key := tuple(labels.items())) in seen:
            continue  # the conditions of a tier share their labels
        seen.add(key)
        named = ("service", "slo", "alertname", "tier", "severity", "urgency")
        name = " ".join(labels[label] for label in named if label in labels)
        yield Case(name, labels, (_receiver(alert, by_service),))


def _receiver(alert: Alert, by_service: Mapping[str, Plan]) -> str:
    if alert.alert == WATCHDOG.name:
        return WATCHDOG_RECEIVER
    labels = alert.labels
    plan = by_service.get(labels["service"])
    if plan is None:
        raise TreeError(f"alert {alert.alert} is of service {labels['service']}, which has no file")
    for tier in _response(plan, labels["slo"]):
        if str(tier.tier) == labels["tier"]:
            return receiver_of(tier, labels["severity"], labels["urgency"])
    raise TreeError(
        f"alert {alert.alert} of {plan.service}, {labels['slo']}, is for tier {labels['tier']},"
        " and nobody answers there"
    )


def _response(plan: Plan, slo: str) -> tuple[Tier, ...]:
    own = (objective.response for objective in plan.objectives if objective.name == slo)
    return next(own, plan.response)


def _unknown(plan: Plan) -> Case:
    name = f"{plan.service} an alert of no tier"
    return Case(name, {"service": plan.service}, (fallback_of(plan),))
