"""The generated routing tests: complete, judged by the real amtool, and able to fail."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from plans import RESPONSE, chat_plan, objective, plan

from inferslo.rules.alertmanager.errors import TreeError
from inferslo.rules.alertmanager.routing import check_routing, read_tests, routing_tests
from inferslo.rules.alertmanager.tree import tree
from inferslo.rules.model import Alert, Group, Recording
from inferslo.rules.yamltext import dump
from inferslo.slo.plan import Plan, Severity, Urgency

ODD = 'chat "ü"\\{x},=~\nnext'


def text(*plans: Plan) -> str:
    return dump(tree(plans))


def alert(service: str = "checkout-assistant", slo: str = "first-token", **labels: str) -> Alert:
    usual = {"service": service, "slo": slo, "tier": "1"}
    usual |= {"severity": Severity.PAGE, "urgency": Urgency.ALWAYS}
    return Alert("InfersloTTFTBurn", "vector(1)", usual | labels, {})


def group(*alerts: Alert) -> Group:
    return Group("alerts", 30, (Recording("inferslo:x", "vector(1)"), *alerts))


WATCHDOG = Alert("InfersloWatchdog", "vector(1)", {"service": "checkout-assistant"}, {})
ALL = group(
    alert(),
    alert(severity="ticket"),
    alert(tier="2"),
    alert(tier="2", severity="ticket"),
    alert(tier="3", severity="ticket"),
    alert(urgency="office-hours"),
    alert(service=ODD),
    WATCHDOG,
)
EXPECTED = {
    "ops-pager", "ops-tickets", "eng-oncall", "eng-tickets", "slo-review/office-hours",
    "ops-pager/office-hours", "watchdog",
}  # fmt: skip


def test_every_alert_reaches_the_receiver_of_its_tier() -> None:
    plans = (chat_plan(), chat_plan(service=ODD))
    tests = routing_tests([ALL], plans)
    cases = read_tests(tests)
    assert {receiver for case in cases for receiver in case.expect} == EXPECTED
    assert len(cases) == len(ALL.rules) - 1 + len(plans)
    assert check_routing(text(*plans), tests) == []


def test_conditions_of_one_tier_are_one_test() -> None:
    tests = routing_tests([group(alert(), alert()), group(alert())], [chat_plan()])
    assert len(read_tests(tests)) == 2


def test_an_alert_that_goes_astray_is_named_with_where_it_goes() -> None:
    other = replace(RESPONSE[0], receiver="eng-oncall")
    tests = routing_tests([group(alert(slo="engine"))], [chat_plan()])
    [strayed] = check_routing(text(chat_plan(response=(other, *RESPONSE[1:]))), tests)
    assert str(strayed) == (
        "checkout-assistant engine InfersloTTFTBurn 1 page always:"
        " goes to eng-oncall, not to ops-pager"
    )


def test_an_alert_that_would_end_in_the_default_receiver_fails() -> None:
    tests = routing_tests([group(alert())], [chat_plan()])
    strayed = check_routing(text(chat_plan(service="search")), tests)
    assert [each.got for each in strayed] == ["unclaimed", "unclaimed"]


def test_an_objective_with_its_own_response_is_tested_by_it() -> None:
    own = (replace(RESPONSE[0], receiver="eng-oncall"),)
    service = plan(objective("ttft", name="own", response=own), objective("e2e", name="usual"))
    tests = routing_tests([group(alert(slo="own"), alert(slo="usual"))], [service])
    assert [case.expect for case in read_tests(tests)[:2]] == [("eng-oncall",), ("ops-pager",)]
    assert check_routing(text(service), tests) == []


def test_an_alert_for_a_tier_in_which_nobody_answers_is_refused() -> None:
    with pytest.raises(TreeError, match="engine, is for tier 2, and nobody answers there"):
        routing_tests([group(alert(slo="engine", tier="2"))], [chat_plan(response=RESPONSE[:1])])


def test_an_alert_of_a_service_without_a_file_is_refused() -> None:
    with pytest.raises(TreeError, match="of service search, which has no file"):
        routing_tests([group(alert(service="search"))], [chat_plan()])


def test_amlint_reads_the_tests_too(tmp_path: Path) -> None:
    """And finds no route that no test reaches, but for what a page of tier 3 would take."""
    files = tmp_path / "alertmanager.yaml", tmp_path / "routing.test.yaml"
    files[0].write_text(text(chat_plan()), encoding="utf-8")
    files[1].write_text(routing_tests([group(*_alerts(), WATCHDOG)], [chat_plan()]))
    amlint = Path(sys.executable).with_name("amlint")
    command = [amlint, "test", *files, "--fail-under", "90"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def _alerts() -> list[Alert]:
    return [
        alert(tier=tier, severity=severity, urgency=urgency)
        for tier in ("1", "2", "3")
        for severity in ("page", "ticket")
        for urgency in ("always", "office-hours")
    ]


def test_a_configuration_that_amtool_refuses_fails_every_test() -> None:
    tests = routing_tests([group(alert())], [chat_plan()])
    [first, _] = check_routing("route: {receiver: nobody}", tests)
    assert "nobody" in first.got


def test_a_file_that_holds_no_tests_is_refused() -> None:
    for wrong in ("- {name: x}", "rules: []", "a: [", "3"):
        with pytest.raises(TreeError, match="no list of routing tests: build it anew"):
            read_tests(wrong)


def test_without_amtool_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = routing_tests([group(alert())], [chat_plan()])
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TreeError, match=r"amtool is not installed.*apt-get install"):
        check_routing(text(chat_plan()), tests)
