"""The whole of a file's rules, held against the tools that will read it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from plans import MATCH, chat_plan, composite, objective, plan
from promtool import promtool

from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Format, Group, Recording
from inferslo.slo.errors import SpecError
from inferslo.slo.load import load
from inferslo.slo.plan import (
    Budgeting,
    Calendar,
    Evaluation,
    Objective,
    Plan,
    Query,
    Selection,
    Window,
)
from inferslo.slo.signals import SIGNALS

CATALOGUE = Path(__file__).parents[2] / "slo" / "catalogue"


def of(signal: str) -> Objective:
    if signal == "promql":
        return objective(signal, query=Query(bad="rate(a[$window])", total="rate(b[$window])"))
    if signal == "check":
        return objective(signal, checks=composite().checks[:1])
    return composite() if signal == "composite" else objective(signal)


def everything() -> Plan:
    """Every signal, each also grouped, in slices and by the calendar's month."""
    grouped = Selection(match=(*MATCH.match, ("job", ("a", "b"))), per=("cluster",))
    plain = [of(signal) for signal in SIGNALS]
    variants = {
        "grouped": {"selection": grouped},
        "slices": {"budgeting": Budgeting.TIMESLICES},
        "month": {"window": Window(30 * 86400, Calendar.MONTH)},
    }
    changed = [
        objective(one.signal.name, **{
            "query": one.query, "checks": one.checks, "name": f"{one.name}-{name}", **change,
        })
        for one in plain for name, change in variants.items()
    ]  # fmt: skip
    return plan(*plain, *changed)


def check_rules(folder: Path, text: str) -> None:
    (folder / "rules.yaml").write_text(text)
    ran = subprocess.run(
        [promtool(), "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


def compiled(file: Plan) -> str:
    return write({file.service: compile_rules(file)}, Format.PROMETHEUS)


def test_prometheus_takes_every_signal_in_every_form(tmp_path: Path) -> None:
    check_rules(tmp_path, compiled(everything()))


@pytest.mark.parametrize(
    "file", sorted(f for f in CATALOGUE.glob("*.yaml") if f.stem != "sources"), ids=lambda f: f.stem
)
def test_prometheus_takes_the_catalogue(tmp_path: Path, file: Path) -> None:
    check_rules(tmp_path, compiled(load(file)))


def test_vmalert_takes_every_signal_in_every_form(tmp_path: Path) -> None:
    vmalert = shutil.which("vmalert")
    assert vmalert, "no vmalert: it comes with Debian's victoria-metrics (make system)"
    file = everything()
    rules = tmp_path / "rules.yaml"
    rules.write_text(write({file.service: compile_rules(file)}, Format.VMALERT))
    ran = subprocess.run([vmalert, "-dryRun", f"-rule={rules}"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_no_rule_reads_a_series_of_its_own_group() -> None:
    """vmalert would see it one evaluation late. The constant that knows the time is no exception:
    it is another group's."""
    for group in compile_rules(everything()):
        made = {rule.record for rule in group.rules if isinstance(rule, Recording)}
        for rule in group.rules:
            read = set(re.findall(r"inferslo:\w+:\w+", rule.expr))
            assert not read & made, (group.name, rule)


def test_long_windows_are_asked_for_seldom_and_short_ones_never() -> None:
    groups = {group.name: group for group in compile_rules(chat_plan())}
    for name in ("base", "derived", "alerts"):
        group = groups[f"inferslo-checkout-assistant-{name}"]
        assert group.interval == 30
        assert not [rule for rule in group.rules if re.search(r"\[\d+d\]", rule.expr)]
    for name in ("budget", "tickets"):
        assert groups[f"inferslo-checkout-assistant-{name}"].interval == 120


def test_a_slow_group_is_never_so_slow_that_its_series_are_stale() -> None:
    for interval in (15, 60, 120):
        groups = compile_rules(chat_plan(evaluation=Evaluation(interval=interval)))
        assert max(group.interval for group in groups if "-warnings" not in group.name) < 300


def test_the_same_plan_is_the_same_bytes() -> None:
    assert compiled(chat_plan()) == compiled(chat_plan())


def test_groups_have_names_of_their_own() -> None:
    names = [group.name for group in compile_rules(chat_plan())]
    assert len(names) == len(set(names))
    assert all(isinstance(group, Group) and group.rules for group in compile_rules(chat_plan()))


def test_an_early_warning_that_there_is_not_is_the_users_mistake() -> None:
    with pytest.raises(SpecError, match="no_such"):
        compile_rules(plan(objective("ttft"), warnings=(("no_such", None),)))
