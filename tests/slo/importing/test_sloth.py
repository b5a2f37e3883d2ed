"""Sloth files: what is carried over means the same, and what is not is listed with its line."""

from __future__ import annotations

from decimal import Decimal

import pytest

from inferslo.slo.errors import SpecError
from inferslo.slo.importing import Imported, import_slos
from inferslo.slo.load import load_text
from inferslo.slo.plan import Objective, Query

CHECKOUT = b"""\
# comments are of no account
version: "prometheus/v1"
service: "checkout"
labels:
  owner: payments
  cluster: blue
slos:
  - name: "answered"
    objective: 99.9
    description: "Nearly all are answered."
    sli:
      events:
        error_query: sum(rate(checkout_requests_total{code=~"(5..|429)"}[{{.window}}]))
        total_query: |
          sum(
            rate(checkout_requests_total[{{ .window }}])
          )
    alerting:
      name: CheckoutErrors
      labels: {category: availability}
      annotations: {summary: "Errors"}
      page_alert:
        labels: {severity: critical}
      ticket_alert:
        disable: true
"""


def sloth(*slos: str, head: str = "version: prometheus/v1\nservice: s\n") -> Imported:
    body = head + "slos:\n" + "".join(f"  - {slo}\n" for slo in slos)
    return import_slos([("sloth.yaml", body.encode())])


def events(bad: str, total: str) -> str:
    queries = f"error_query: '{bad}', total_query: '{total}'"
    return f"{{name: a, objective: 99, sli: {{events: {{{queries}}}}}}}"


def only(imported: Imported) -> Objective:
    [file] = imported.files
    assert file.faults == ()
    [objective] = load_text(file.text).objectives
    return objective


def told(imported: Imported) -> list[tuple[str, str]]:
    """(line:column, what) of everything that was left out."""
    return [(r.place.partition(":")[2], r.what) for r in imported.remarks if r.lost]


def changed(imported: Imported) -> list[str]:
    return [remark.why for remark in imported.remarks if not remark.lost]


def test_a_file_is_carried_over() -> None:
    imported = import_slos([("checkout.yaml", CHECKOUT)])
    objective = only(imported)
    plan = load_text(imported.files[0].text)

    assert (plan.service, plan.owner) == ("checkout", "payments")
    assert (objective.name, objective.budget) == ("answered", Decimal("0.001"))
    assert objective.description == "Nearly all are answered."
    assert objective.query == Query(
        bad='sum(rate(checkout_requests_total{code=~"(5..|429)"}[$window]))',
        total="sum(\n  rate(checkout_requests_total[$window])\n)",
    )


def test_what_is_left_out_is_told_with_its_line_and_at_the_top_of_the_file() -> None:
    imported = import_slos([("checkout.yaml", CHECKOUT)])
    assert imported.lost
    assert told(imported) == [
        ("6:3", "labels.cluster"),
        ("19:7", "slos[0].alerting.name"),
        ("20:7", "slos[0].alerting.labels"),
        ("21:7", "slos[0].alerting.annotations"),
        ("23:9", "slos[0].alerting.page_alert.labels"),
        ("25:9", "slos[0].alerting.ticket_alert.disable"),
    ]
    comment = imported.files[0].text.partition("\nservice:")[0]
    assert all(str(remark) in comment for remark in imported.remarks)


def test_the_kubernetes_object_is_the_same_in_camel_case() -> None:
    body = b"""\
apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata: {name: slos, namespace: monitoring}
spec:
  service: checkout
  slos:
    - name: answered
      objective: 99.5
      sli:
        events:
          errorQuery: sum(rate(bad[{{.window}}]))
          totalQuery: sum(rate(all[{{.window}}]))
      alerting: {pageAlert: {disable: true}}
"""
    imported = import_slos([("crd.yaml", body)])
    objective = only(imported)

    assert objective.query == Query("sum(rate(bad[$window]))", "sum(rate(all[$window]))")
    assert objective.outage is None
    assert told(imported) == []
    assert changed(imported) == ["belongs to the Kubernetes object, not to the SLOs"]


def test_increase_becomes_rate_since_floors_count_events() -> None:
    imported = sloth(events("sum(increase(b[{{.window}}]))", "sum(increase(t[{{.window}}]))"))
    assert only(imported).query == Query("sum(rate(b[$window]))", "sum(rate(t[$window]))")
    assert "increase is written as rate" in changed(imported)[0]


@pytest.mark.parametrize(
    ("bad", "total"),
    [
        ("sum(increase(b[{{.window}}]) > 5)", "sum(increase(t[{{.window}}]))"),
        ("sum(increase(b[{{.window}}]))", "sum(rate(t[{{.window}}]))"),
        ("count(sum_over_time(b[{{.window}}:]))", "count(sum_over_time(t[{{.window}}:]))"),
    ],
)
def test_what_is_no_rate_and_cannot_be_made_one_is_kept_and_told(bad: str, total: str) -> None:
    imported = sloth(events(bad, total))
    query = only(imported).query
    assert query is not None
    assert query.bad == bad.replace("{{.window}}", "$window")
    assert "not events a second" in changed(imported)[0]


def test_queries_that_keep_labels_have_a_budget_for_each() -> None:
    imported = sloth(
        events("sum by (zone) (rate(b[{{.window}}]))", "sum(rate(t[{{.window}}])) by (zone)")
    )
    assert only(imported).selection.per == ("zone",)
    assert changed(imported) == []


@pytest.mark.parametrize(
    ("bad", "total"),
    [
        ("sum by (zone) (rate(b[5m]))", "sum(rate(t[5m]))"),
        ("sum by (service) (rate(b[5m]))", "sum by (service) (rate(t[5m]))"),
        ("rate(b[5m])", "rate(t[5m])"),
        ("sum without (pod) (rate(b[5m]))", "sum without (pod) (rate(t[5m]))"),
    ],
)
def test_labels_that_cannot_be_kept_are_told(bad: str, total: str) -> None:
    imported = sloth(events(bad, total))
    assert only(imported).selection.per == ()
    assert "`per`" in changed(imported)[0]


def test_a_ratio_weighs_every_evaluation_the_same() -> None:
    imported = sloth(
        '{name: a, objective: 95, sli: {raw: {error_ratio_query: "sum(slo:error{{.window}})"}}}'
    )
    assert only(imported).query == Query(
        bad="(sum(slo:error$window)) >= 0", total="((sum(slo:error$window)) >= 0) * 0 + 1"
    )
    assert "event floor" in changed(imported)[0]


@pytest.mark.parametrize(
    ("slo", "why"),
    [
        ("{name: a, objective: 100, sli: {}}", "no objective between 0 and 100"),
        ("{name: a, objective: NaN, sli: {}}", "no objective between 0 and 100"),
        ("{name: a, sli: {}}", "no objective between 0 and 100"),
        ("{name: a, objective: 99, sli: {}}", "it has no queries"),
        ("{name: a, objective: 99, sli: {plugin: {id: x}}}", "plugins of Sloth cannot be run"),
        (events("b[{{.other}}]", "t"), "only {{.window}} can be filled in"),
    ],
)
def test_an_slo_that_cannot_be_judged_is_left_out(slo: str, why: str) -> None:
    imported = sloth(slo)
    assert imported.files == ()
    [remark] = imported.remarks
    assert (remark.place, remark.what) == ("sloth.yaml:4:5", "slo a")
    assert remark.why.startswith(why)


def test_a_key_that_nobody_knows_is_told() -> None:
    imported = sloth(events("sum(rate(b[5m]))", "sum(rate(t[5m]))")[:-1] + ", shiny: {new: 1}}")
    assert only(imported)
    assert [what for _, what in told(imported)] == ["slos[0].shiny"]


def test_documents_of_one_service_are_one_file_and_names_stay_unique() -> None:
    body = b"version: prometheus/v1\nservice: s\nlabels: {team: x}\nslos: [%s]\n"
    slo = events("sum(rate(b[5m]))", "sum(rate(t[5m]))").encode()
    imported = import_slos([("a.yaml", body % slo + b"---\n" + body.replace(b"x", b"y") % slo)])

    [file] = imported.files
    assert [o.name for o in load_text(file.text).objectives] == ["a", "a-2"]
    assert told(imported) == [("8:10", "labels.team")]
    assert changed(imported) == ["is called a-2 here"]


def test_services_are_files_of_their_own() -> None:
    slo = events("sum(rate(b[5m]))", "sum(rate(t[5m]))")
    parts = [f"version: prometheus/v1\nservice: {name}\nslos: [{slo}]\n" for name in ("a", "b")]
    imported = import_slos([("a.yaml", "---\n".join(parts).encode())])
    assert [file.service for file in imported.files] == ["a", "b"]


def test_a_service_without_a_name_is_left_out() -> None:
    imported = sloth(events("b", "t"), head="version: prometheus/v1\n")
    assert [remark.why for remark in imported.remarks] == ["service is missing"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"version: prometheus/v2\n", 'a.yaml:1:1: "prometheus/v2" is no known version'),
        (b"service: x\n", "a.yaml:1:1: there is no version"),
        (b"", "a.yaml: the file is empty: name a file of Sloth or OpenSLO"),
        (b"# none\n---\n", "a.yaml: the file is empty"),
        (
            b"service: x\nobjectives: []\n",
            "a.yaml:1:1: this is an SLO file of inferslo already: see inferslo check",
        ),
        (b"version: [\n", "a.yaml:2:1: a value is expected here"),
        (b"version: prometheus/v1\nx: &a 1\ny: *a\n", "a.yaml:3:4: aliases are not read"),
        (
            b"version: prometheus/v1\n---\napiVersion: openslo/v1\n",
            "these are files of two formats",
        ),
    ],
)
def test_a_file_that_is_none_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        import_slos([("a.yaml", body)])
    assert refused.value.problems[0].startswith(problem)


def test_what_must_be_mended_by_hand_is_told() -> None:
    """A query that is just short enough to be read is written into a longer one."""
    longest = "sum(rate(b[5m]))".ljust(2040, "b").replace("]))b", "]))+sum(b") + ")"
    imported = sloth(
        f"{{name: a, objective: 99, sli: {{raw: {{error_ratio_query: {longest!r}}}}}}}"
    )
    [file] = imported.files
    assert imported.lost
    assert [fault.rpartition(": ")[2] for fault in file.faults] == [
        "this is longer than 2048 characters"
    ]
