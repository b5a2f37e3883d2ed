"""OpenSLO v1: documents that refer to each other, ratios, values, windows and ways of budgeting."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import yaml

from inferslo.slo.importing import Imported, import_slos
from inferslo.slo.load import load_text
from inferslo.slo.plan import Budgeting, Calendar, Objective, Query, Window
from inferslo.slo.signals import Shape

GOOD = 'sum(rate(requests_total{code!~"5.."}[5m]))'
TOTAL = "sum(rate(requests_total[5m]))"
DAY = 86400


def metric(query: str, kind: str = "Prometheus") -> dict[str, Any]:
    return {"metricSource": {"type": kind, "spec": {"query": query}}}


def ratio(**queries: str) -> dict[str, Any]:
    return {"ratioMetric": {"counter": True} | {key: metric(q) for key, q in queries.items()}}


def document(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    head = {"apiVersion": "openslo/v1", "kind": kind, "metadata": {"name": name} | metadata}
    return head | {"spec": spec}


def slo(indicator: Any = None, objectives: Any = None, **spec: Any) -> dict[str, Any]:
    indicator = ratio(good=GOOD, total=TOTAL) if indicator is None else indicator
    keys = {"service": "web", "budgetingMethod": "Occurrences"} | spec
    keys["indicator"] = {"spec": indicator}
    keys["objectives"] = objectives or [{"target": 0.99}]
    return document("SLO", "answered", keys)


def imported(*documents: dict[str, Any]) -> Imported:
    unshared = json.loads(json.dumps(documents))  # else there were aliases
    body = yaml.safe_dump_all(unshared, sort_keys=False, width=9999, explicit_start=True)
    return import_slos([("openslo.yaml", body.encode())])


def objectives(result: Imported) -> tuple[Objective, ...]:
    [file] = result.files
    assert file.faults == ()
    return load_text(file.text).objectives


def only(*documents: dict[str, Any]) -> Objective:
    [objective] = objectives(imported(*documents))
    return objective


def told(result: Imported) -> dict[str, str]:
    return {remark.what: remark.why for remark in result.remarks if remark.lost}


def test_a_ratio_of_good_and_total() -> None:
    objective = only(slo())
    assert objective.query == Query(
        bad="(sum(rate(requests_total[$window]))) - "
        '(sum(rate(requests_total{code!~"5.."}[$window])))',
        total="sum(rate(requests_total[$window]))",
    )  # fmt: skip
    assert (objective.name, objective.budget) == ("answered", Decimal("0.01"))
    assert objective.budgeting is Budgeting.OCCURRENCES
    assert told(imported(slo())) == {}


def test_a_ratio_of_bad_and_total() -> None:
    query = only(slo(ratio(bad="sum(rate(bad[1h]))", total="sum(rate(all[1h]))"))).query
    assert query == Query("sum(rate(bad[$window]))", "sum(rate(all[$window]))")


@pytest.mark.parametrize(
    ("counter", "rate"),
    [
        ("all", "sum(rate(all[$window]))"),
        ("sum(all)", "sum(rate(all[$window]))"),
        ('all{code=~"2{1}.."}', 'sum(rate(all{code=~"2{1}.."}[$window]))'),
        ("sum by (zone) (all)", "sum by (zone) (rate(all[$window]))"),
        ("sum(all) by (zone)", "sum by (zone) (rate(all[$window]))"),
    ],
)
def test_a_plain_counter_is_rated_before_it_is_added_up(counter: str, rate: str) -> None:
    assert only(slo(ratio(bad=counter, total=counter))).query == Query(rate, rate)


@pytest.mark.parametrize("query", ["sum(a) / sum(b)", "a + b", "max(all)"])
def test_a_counter_inside_an_expression_is_left_out(query: str) -> None:
    result = imported(slo(ratio(bad=query, total="all")))
    assert result.files == ()
    assert "it is no plain counter" in told(result)["SLO answered"]


def test_a_gauge_is_taken_as_it_is_and_told() -> None:
    indicator = ratio(bad="failing", total="running")
    indicator["ratioMetric"]["counter"] = False
    result = imported(slo(indicator))
    assert objectives(result)[0].query == Query("failing", "running")
    assert any("taken as events a second" in remark.why for remark in result.remarks)


def test_a_raw_ratio_of_successes_is_turned_round() -> None:
    indicator = {"ratioMetric": {"raw": metric("avg(ok)"), "rawType": "success"}}
    query = only(slo(indicator)).query
    assert query == Query("(1 - (avg(ok))) >= 0", "((1 - (avg(ok))) >= 0) * 0 + 1")


@pytest.mark.parametrize(
    ("target", "objective"),
    [
        ({"target": 0.9995}, "0.9995"),
        ({"targetPercent": 99.9}, "0.999"),
        ({"targetPercent": 99.99}, "0.9999"),
    ],
)
def test_targets_are_exact(target: dict[str, float], objective: str) -> None:
    assert only(slo(objectives=[target])).objective == Decimal(objective)


@pytest.mark.parametrize("target", [{"target": 1}, {"target": 0}, {"targetPercent": 100}])
def test_a_target_without_a_budget_is_left_out(target: dict[str, float]) -> None:
    result = imported(slo(objectives=[target]))
    assert result.files == ()
    assert "no target between 0 and 1" in told(result)["SLO answered"]


@pytest.mark.parametrize(
    ("objective", "mend"),
    [
        ({"target": 99}, "target is a ratio: for 99 % write 0.99, or targetPercent"),
        ({"target": 99.95}, "target is a ratio: for 99.95 % write 0.9995, or targetPercent"),
        ({"displayName": "x"}, "its target is missing: write target: 0.995"),
        (
            {"target": 0.99, "timeSliceTarget": 95},
            "timeSliceTarget is a ratio: for 95 % write 0.95",
        ),
    ],
)
def test_a_percentage_where_a_ratio_belongs_is_told_with_the_ratio(
    objective: dict[str, float], mend: str
) -> None:
    result = imported(slo(objectives=[objective], budgetingMethod="Timeslices"))
    assert mend in told(result)["SLO answered"]


def test_timeslices_have_a_target_of_their_own() -> None:
    target = {"target": 0.99, "timeSliceTarget": 0.95, "timeSliceWindow": "5m"}
    objective = only(slo(objectives=[target], budgetingMethod="Timeslices"))
    assert objective.budgeting is Budgeting.TIMESLICES
    assert objective.slice_target == Decimal("0.95")


def test_a_slice_may_have_to_be_wholly_good() -> None:
    target = {"target": 0.99, "timeSliceTarget": 1.0}
    objective = only(slo(objectives=[target], budgetingMethod="Timeslices"))
    assert objective.slice_target == 1


@pytest.mark.parametrize(
    ("method", "why"),
    [("Timeslices", "timeSliceTarget is no ratio"), ("Sometimes", "none of OpenSLO v1")],
)
def test_a_way_of_budgeting_that_cannot_be_followed_leaves_it_out(method: str, why: str) -> None:
    assert why in told(imported(slo(budgetingMethod=method)))["SLO answered"]


@pytest.mark.parametrize("window", ["1m", 10])
def test_slices_of_another_length_are_told(window: Any) -> None:
    target = {"target": 0.99, "timeSliceTarget": 0.95, "timeSliceWindow": window}
    result = imported(slo(objectives=[target], budgetingMethod="Timeslices"))
    assert "spec.objectives[0].timeSliceWindow" in told(result)


def test_ratio_timeslices_are_the_mean_of_ratios() -> None:
    indicator = ratio(bad="sum(rate(b[5m]))", total="sum(rate(t[5m]))")
    query = only(slo(indicator, budgetingMethod="RatioTimeslices")).query
    share = "((sum(rate(b[$window]))) / (sum(rate(t[$window])) > 0))"
    assert query == Query(f"{share} >= 0", f"({share} >= 0) * 0 + 1")


@pytest.mark.parametrize(
    ("op", "value", "query", "threshold"),
    [
        ("lte", 0.3, "p99", "0.3"),
        ("lt", 0.3, "(p99) >= bool 0.3", "0.5"),
        ("gte", 5, "(p99) < bool 5", "0.5"),
        ("gt", 5, "(p99) <= bool 5", "0.5"),
        ("lte", -1, "(p99) > bool -1", "0.5"),
        ("lte", 0, "(p99) > bool 0", "0.5"),
    ],
)
def test_a_value_is_bad_on_the_other_side_of_its_threshold(
    op: str, value: float, query: str, threshold: str
) -> None:
    objective = only(
        slo({"thresholdMetric": metric("p99")}, [{"op": op, "value": value, "target": 0.95}])
    )
    assert objective.signal.shape is Shape.VALUE
    assert (objective.query, objective.threshold) == (Query(value=query), Decimal(threshold))


def test_a_value_keeps_the_ranges_that_its_author_chose() -> None:
    p99 = "histogram_quantile(0.99, sum by (le) (rate(x_bucket[10m])))"
    objective = only(
        slo({"thresholdMetric": metric(p99)}, [{"op": "lte", "value": 1, "target": 0.95}])
    )
    assert objective.query == Query(value=p99)


def test_a_value_without_a_comparison_is_left_out() -> None:
    result = imported(slo({"thresholdMetric": metric("p99")}, [{"target": 0.95}]))
    assert "op and value are missing" in told(result)["SLO answered"]


def test_queries_of_other_stores_are_left_out() -> None:
    result = imported(slo({"thresholdMetric": metric("avg:x{*}", "Datadog")}))
    assert told(result) == {"SLO answered": "Datadog is not asked in PromQL"}


def test_references_are_followed() -> None:
    spec = {"service": "web", "indicatorRef": "errors", "objectives": [{"target": 0.99}]}
    source = {"metricSourceRef": "prom", "spec": {"query": TOTAL}}
    sli = {"ratioMetric": {"bad": {"metricSource": source}, "total": {"metricSource": source}}}
    result = imported(
        document("SLO", "answered", spec),
        document("SLI", "errors", sli),
        document("DataSource", "prom", {"type": "Prometheus", "connectionDetails": {"url": "x"}}),
    )
    assert told(result) == {}
    assert objectives(result)[0].query == Query(
        "sum(rate(requests_total[$window]))", "sum(rate(requests_total[$window]))"
    )


def test_references_that_lead_nowhere_are_told() -> None:
    spec = {"service": "web", "indicatorRef": "errors", "objectives": [{"target": 0.99}]}
    unknown = {"metricSource": {"metricSourceRef": "prom", "spec": {"query": TOTAL}}}
    sli = {"ratioMetric": {"bad": unknown, "total": unknown}}
    alone = told(imported(document("SLO", "answered", spec)))
    assert alone["SLO answered"] == "its indicator is not among what is imported"
    without_source = told(
        imported(document("SLO", "answered", spec), document("SLI", "errors", sli))
    )
    assert "the data source prom, of unknown type" in without_source["SLO answered"]


def test_files_are_read_together() -> None:
    spec = {"service": "web", "indicatorRef": "errors", "objectives": [{"target": 0.99}]}
    sli = document("SLI", "errors", ratio(bad=TOTAL, total=TOTAL))
    sources = [
        (name, yaml.safe_dump(doc).encode())
        for name, doc in (("slo.yaml", document("SLO", "answered", spec)), ("sli.yaml", sli))
    ]
    assert len(import_slos(sources).files) == 1


def test_the_service_tells_owner_and_description() -> None:
    result = imported(
        slo(), document("Service", "web", {"description": "Sells."}, labels={"team": "shop"},
                        displayName="Web shop"),
    )  # fmt: skip
    plan = load_text(result.files[0].text)
    assert plan.owner == "shop"
    assert "description: 'Web shop: Sells.'" in result.files[0].text


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"duration": "4w", "isRolling": True}, Window(28 * DAY)),
        ({"duration": "12h", "isRolling": True}, Window(DAY // 2)),
        ({"duration": "1M", "isRolling": True}, Window(30 * DAY)),
        ({"duration": "1Q"}, Window(90 * DAY)),
        (
            {"duration": "1M", "calendar": {"startTime": "2024-01-01 00:00:00"}},
            Window(30 * DAY, Calendar.MONTH),
        ),
        (
            {"duration": "1w", "calendar": {"startTime": "2024-01-01 00:00:00", "timeZone": "UTC"}},
            Window(7 * DAY, Calendar.WEEK),
        ),
    ],
)
def test_windows(window: dict[str, Any], expected: Window) -> None:
    result = imported(slo(timeWindow=[window]))
    assert told(result) == {}
    assert objectives(result)[0].window == expected


@pytest.mark.parametrize(
    ("window", "lost", "expected"),
    [
        ({"duration": "1Q", "calendar": {"startTime": "2024-01-01 00:00:00"}},
         "spec.timeWindow[0].calendar", Window(90 * DAY)),
        ({"duration": "1M", "calendar": {"startTime": "2024-01-15 00:00:00"}},
         "spec.timeWindow[0].calendar.startTime", Window(30 * DAY, Calendar.MONTH)),
        ({"duration": "1w", "calendar": {"startTime": "2024-01-02 00:00:00"}},
         "spec.timeWindow[0].calendar.startTime", Window(7 * DAY, Calendar.WEEK)),
        ({"duration": "1M", "calendar": {"startTime": "2024-01-01 12:30:00"}},
         "spec.timeWindow[0].calendar.startTime", Window(30 * DAY, Calendar.MONTH)),
        ({"duration": "soon"}, "spec.timeWindow[0].duration", Window(30 * DAY)),
    ],
)  # fmt: skip
def test_windows_that_do_not_fit(window: dict[str, Any], lost: str, expected: Window) -> None:
    result = imported(slo(timeWindow=[window]))
    assert list(told(result)) == [lost]
    assert objectives(result)[0].window == expected


def test_alerts_are_left_out_with_the_reason() -> None:
    result = imported(
        slo(alertPolicies=["fast"]),
        document("AlertPolicy", "fast", {"conditions": [{"conditionRef": "burn"}]}),
        document("AlertCondition", "burn", {"severity": "page"}),
        document("AlertNotificationTarget", "mail", {"target": "email"}),
    )
    assert list(told(result)) == [
        "spec.alertPolicies",
        "AlertPolicy fast",
        "AlertCondition burn",
        "AlertNotificationTarget mail",
    ]


def test_each_objective_of_an_slo_stands_alone() -> None:
    parts = [
        {"displayName": "Internal goal", "target": 0.999, "compositeWeight": 2},
        {"displayName": "SLA", "target": 0.99, "compositeWeight": 1},
    ]
    result = imported(slo(objectives=parts))
    names = [(o.name, str(o.objective)) for o in objectives(result)]
    assert names == [("answered-internal-goal", "0.999"), ("answered-sla", "0.99")]
    assert [what.rpartition(".")[2] for what in told(result)] == ["compositeWeight"] * 2


def test_an_objective_may_have_its_own_indicator() -> None:
    own = {"target": 0.9, "indicator": {"spec": ratio(bad="sum(rate(own[5m]))", total=TOTAL)}}
    query = only(slo(objectives=[own])).query
    assert query is not None
    assert query.bad == "sum(rate(own[$window]))"


def test_a_document_twice_an_sli_unused_and_an_unknown_key_are_told() -> None:
    again = slo()
    again["spec"]["shiny"] = 1
    result = imported(again, slo(), document("SLI", "unused", ratio(bad=TOTAL, total=TOTAL)))
    assert told(result) == {
        "spec.shiny": "has no counterpart in an SLO file of inferslo",
        "SLO answered": "there is one of that name already",
        "SLI unused": "no SLO that was imported refers to it",
    }


def test_a_name_that_has_to_change_is_told() -> None:
    odd = slo()
    odd["metadata"]["name"], odd["spec"]["service"] = "web/answered", "web shop"
    result = imported(odd)
    assert [file.service for file in result.files] == ["web-shop"]
    assert objectives(result)[0].name == "web-answered"
    assert [(r.what, r.why) for r in result.remarks] == [
        ("metadata.name", "is called web-answered here"),
        ("spec.service", "is called web-shop here"),
    ]
