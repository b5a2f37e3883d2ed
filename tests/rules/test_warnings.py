"""Early warnings, each fired and kept quiet in a real promtool by the cases beside this file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import MATCH, chat_plan, objective, plan
from promcases import Case, named, promtool
from promtool import Said, ask

from inferslo.rules import causes, warnings
from inferslo.rules.model import Alert
from inferslo.rules.naming import ALERTS
from inferslo.rules.template import expand
from inferslo.slo.errors import SpecError
from inferslo.slo.plan import Canary, Plan, Selection

CASES: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "warnings_cases.yaml").read_text(encoding="utf-8")
)
CATALOGUE = {warning.name: warning for warning in warnings.catalogue()}
EVERYTHING = chat_plan(canary=Canary("track", "new", "old"))


def alerts(plan: Plan) -> dict[str, Alert]:
    rules = [rule for group in warnings.groups(plan) for rule in group.rules]
    return {rule.alert: rule for rule in rules if isinstance(rule, Alert)}


def firing() -> Iterator[Case]:
    for name, kinds in CASES.items():
        for n, case in enumerate(kinds["fires"]):
            expected = [CATALOGUE[name].alert, *case.get("also", [])]
            yield Case(f"{name} fires {n}", case["series"], case["at"], expected)


def quiet() -> Iterator[Case]:
    for name, kinds in CASES.items():
        for n, case in enumerate(kinds.get("quiet", [])):
            yield Case(f"{name} quiet {n}", case["series"], case["at"], case.get("also", []))


def test_every_warning_has_cases() -> None:
    assert CASES.keys() == CATALOGUE.keys()
    assert all(kinds["fires"] for kinds in CASES.values())


def test_each_fires_on_what_it_is_about_and_on_nothing_that_looks_like_it(tmp_path: Path) -> None:
    short = [case for case in [*firing(), *quiet()] if not case.takes_days]
    assert promtool(tmp_path, warnings.groups(EVERYTHING), short) == ""


def test_the_same_of_those_that_compare_with_yesterday(tmp_path: Path) -> None:
    long = [case for case in [*firing(), *quiet()] if case.takes_days]
    assert promtool(tmp_path, warnings.groups(EVERYTHING), long, every="30m") == ""


@pytest.mark.parametrize(("born", "ratio"), [(40, None), (0, 10)])
def test_a_service_that_began_a_day_ago_does_not_surge(
    tmp_path: Path, born: int, ratio: float | None
) -> None:
    """Of its first minutes a rate over ten is too small; of the same traffic that was there before
    it is not."""
    success = named('REQUESTS{outcome="success"}')
    begun = f"_x{born - 1} 0+10x{1500 - born}" if born else "0+1x1440 1460+10x60"
    expr = f"max({alerts(EVERYTHING)['InfersloTrafficSurge'].expr})"
    ask(tmp_path, {success: begun}, Said("1483m", expr, ratio), step="1m")


def healthy(counter: str) -> dict[str, str]:
    """A busy service in good order; `counter` is how its counters go, by a rate a minute."""
    rates = {
        'REQUESTS{outcome="success"}': 60, 'REQUESTS{outcome="aborted"}': 1,
        'REQUESTS{outcome="error"}': 0, "QUEUE_count": 60, "QUEUE_sum": 3, "E2E_count": 60,
        'E2E_bucket{le="1"}': 5, 'E2E_bucket{le="2"}': 50, 'E2E_bucket{le="5"}': 60,
        'E2E_bucket{le="+Inf"}': 60,
        "GENERATION_TOKENS": 12000, "PROMPT_TOKENS": 30000, "PREEMPTIONS": 0, "ENGINE_RESETS": 0,
        'GATEWAY_REQUESTS{status="200"}': 60, "GATEWAY_UPSTREAM_ATTEMPTS": 61,
        'AGENT_TURNS{outcome="success"}': 30, 'SESSIONS{state="started"}': 10,
        "HOST_TCP_SEGMENTS": 9000, "HOST_TCP_RETRANSMITS": 4, "HOST_LISTEN_OVERFLOWS": 0,
    }  # fmt: skip
    gauges = {
        "REQUESTS_RUNNING": "8x150", "REQUESTS_WAITING": "0x150", "KV_USAGE_MAX": "0.6x150",
        'GPU_TEMPERATURE{sensor="gpu"}': "70x150", "GPU_UTILIZATION": "0.9x150",
        "GPU_VISIBLE": "1x150", "GPU_EXPECTED": "1x150", "GPU_UP": "1x150",
        'SOURCE_UP{source="host"}': "1x150", 'HOST_SOCKETS{state="established"}': "80x150",
    }  # fmt: skip
    return gauges | {name: counter.replace("RATE", str(rate)) for name, rate in rates.items()}


def test_a_busy_service_is_quiet_and_so_is_its_restart(tmp_path: Path) -> None:
    steady, restarted = "0+RATEx150", "5000+RATEx59 0+RATEx80"
    cases = [
        Case("steady", healthy(steady), "100m"),
        Case("shortly after a restart", healthy(restarted), "64m"),
        Case("a while after a restart", healthy(restarted), "80m"),
        Case("no GPU", {k: v for k, v in healthy(steady).items() if "GPU" not in k}, "100m"),
        Case("nothing at all", {}, "100m", beside=False),
    ]
    assert promtool(tmp_path, warnings.groups(EVERYTHING), cases) == ""


def told_by_their_engine() -> list[Case]:
    """Cases of families that do not say themselves whose they are, and one that does."""
    joined = {
        name for name, alert in alerts(EVERYTHING).items() if "last_over_time(" in alert.expr[-100:]
    }
    assert {"InfersloGPUHot", "InfersloSocketsPilingUp", "InfersloSourceDown"} <= joined
    return [case for case in firing() if {*case.alerts} & {*joined, "InfersloKVCacheFull"}]


def test_nothing_fires_for_another_services_engine(tmp_path: Path) -> None:
    others = [
        dataclasses.replace(case, model="another", alerts=()) for case in told_by_their_engine()
    ]
    # What one of our engines would suffer from its neighbours is not theirs to hear.
    others = [case for case in others if not case.name.startswith("neighbour")]
    assert promtool(tmp_path, warnings.groups(EVERYTHING), others) == ""


@pytest.mark.parametrize("job", ["sidecar", "another"])
def test_a_service_may_be_told_by_labels_of_targets(tmp_path: Path, job: str) -> None:
    by_job = dataclasses.replace(EVERYTHING, selection=Selection(match=(("job", (job,)),)))
    cases = [case for case in firing() if case.name in ("gpu_hot fires 0", "neighbour fires 0")]
    if job == "another":
        cases = [dataclasses.replace(case, alerts=()) for case in cases]
    assert promtool(tmp_path, warnings.groups(by_job), cases) == ""


def test_every_threshold_has_a_unit() -> None:
    for warning in warnings.catalogue():
        assert bool(warning.unit) == (warning.threshold is not None), warning.name


def test_what_happens_at_one_target_says_at_which() -> None:
    """An engine beside its sidecar has the same address on every pod."""
    for warning in warnings.catalogue():
        if any(f"$labels.{label} " in warning.summary for label in ("engine", "gpu", "scope")):
            assert "$labels.instance " in warning.summary, warning.name


def test_no_warning_pages_and_each_has_all_labels() -> None:
    for alert in alerts(EVERYTHING).values():
        assert alert.labels["severity"] == "ticket"
        assert all(
            alert.labels[each] for each in ("service", "slo", "tier", "team", "severity", "urgency")
        )
        assert alert.annotations["actions"].count("\n") == 2
        assert alert.annotations["runbook_url"].endswith(alert.alert)


def test_a_threshold_of_the_file_replaces_the_default() -> None:
    hotter = plan(objective("ttft"), warnings=(("gpu_hot", Decimal(85)),))
    assert ">= 85" in alerts(hotter)["InfersloGPUHot"].expr
    at_zero = plan(objective("ttft"), warnings=(("listen_overflows", Decimal(0)),))
    assert "> 0)" in alerts(at_zero)["InfersloListenOverflows"].expr


def test_off_is_off() -> None:
    everything = set(alerts(plan(objective("ttft"))))
    without = set(alerts(plan(objective("ttft"), warnings=(("gpu_hot", None),))))
    assert everything - without == {"InfersloGPUHot"}


def test_what_the_file_does_not_say_is_not_asked_for() -> None:
    without = set(alerts(plan(objective("ttft"))))
    assert set(alerts(EVERYTHING)) - without == {
        "InfersloCanaryWorse",
        "InfersloTTFTGrowsWithLength",
    }


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("gpu_hott", Decimal(80)), "there is no gpu_hott: did you mean gpu_hot?"),
        (("gpu_lost", Decimal(1)), "gpu_lost has no threshold: write off, or leave it out"),
    ],
)
def test_a_name_or_threshold_that_there_is_not_is_an_error(
    asked: tuple[str, Decimal], says: str
) -> None:
    with pytest.raises(SpecError, match=says.replace("?", r"\?")):
        warnings.groups(plan(objective("ttft"), warnings=(asked,)))


def test_a_tier_that_the_file_has_not_is_replaced_by_the_one_before() -> None:
    first = plan(objective("ttft"), response=plan().response[:1])
    assert {alert.labels["tier"] for alert in alerts(first).values()} == {"1"}
    assert {alert.labels["team"] for alert in alerts(first).values()} == {"operations"}


def test_text_in_strings_is_left_alone() -> None:
    text = 'label_replace(ENGINE_UP, "REQUESTS", "$1", "engine", "(.+)")'
    assert expand(text, Selection()) == (
        'label_replace(inferslo_engine_up, "REQUESTS", "$1", "engine", "(.+)")'
    )


def test_an_unknown_family_is_a_programming_error() -> None:
    with pytest.raises(KeyError, match="no family NO_SUCH"):
        expand("rate(NO_SUCH[5m])", MATCH)


def test_every_fault_is_placed() -> None:
    """docs/faults.md says of each fault which alert names it, or why none can."""
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    table, _, unseen = page.partition("## What metrics do not show")
    rows = dict(re.findall(r"^\| (F\d+) \|(.*)\|$", table, re.MULTILINE))
    assert list(rows) == [f"F{n}" for n in range(1, 38)]
    none = {fault for fault, row in rows.items() if "`Inferslo" not in row}
    assert none == set(re.findall(r"^\| (F\d+) \|", unseen, re.MULTILINE))
    known = {warning.alert for warning in CATALOGUE.values()} | {alert.name for alert in ALERTS}
    for fault, row in rows.items():
        named = set(re.findall(r"`(Inferslo\w+)`", row))
        assert named <= known, fault
        by_data = {each.alert for each in CATALOGUE.values() if fault in each.faults}
        by_data |= {alert for alert, faults in causes.FAULTS.items() if fault in faults}
        assert by_data <= named, fault
