"""What was imported is compiled into rules, which a real promtool runs on series."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import Format, write
from inferslo.slo.importing import import_slos
from inferslo.slo.load import load_text

# Five of a hundred requests a minute fail; `ratio` is what somebody recorded of it.
SERIES = {
    'requests_total{code="500"}': "0+5x60",
    'requests_total{code="200"}': "0+95x60",
    "failed:ratio5m": "0.05x60",
}
SLOTH = r"""
version: prometheus/v1
service: web
slos:
  - name: rate
    objective: 99
    sli:
      events:
        error_query: sum(rate(requests_total{code=~"5.."}[{{.window}}]))
        total_query: sum(rate(requests_total[{{.window}}]))
  - name: increase
    objective: 99
    sli:
      events:
        error_query: |
          sum(increase(requests_total{code=~"5.."}[{{.window}}])) OR on() vector(0)
        total_query: sum(increase(requests_total[{{.window}}]))
  - name: raw
    objective: 99
    sli: {raw: {error_ratio_query: "failed:ratio{{.window}}"}}
"""
OPENSLO = r"""
apiVersion: openslo/v1
kind: SLO
metadata: {name: good}
spec:
  service: web
  budgetingMethod: Occurrences
  indicator:
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: 'sum(requests_total{code="200"})'}}}
        total: {metricSource: {type: Prometheus, spec: {query: requests_total}}}
  objectives: [{target: 0.99}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: mean}
spec:
  service: web
  budgetingMethod: RatioTimeslices
  indicator:
    spec:
      ratioMetric:
        bad:
          metricSource:
            type: Prometheus
            spec: {query: 'sum(rate(requests_total{code=~"5.."}[1m]))'}
        total: {metricSource: {type: Prometheus, spec: {query: 'sum(rate(requests_total[1m]))'}}}
  objectives: [{target: 0.99}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: value}
spec:
  service: web
  budgetingMethod: Occurrences
  indicator:
    spec:
      thresholdMetric: {metricSource: {type: Prometheus, spec: {query: "failed:ratio5m"}}}
  objectives: [{op: gte, value: 0.06, target: 0.99}]
"""


def bad_ratios(imported: str, folder: Path, expected: dict[str, float]) -> None:
    """Each objective's bad ratio after half an hour is what is expected, says promtool."""
    [file] = import_slos([("file.yaml", imported.encode())]).files
    plan = load_text(file.text)
    rules = write({plan.service: compile_rules(plan)}, Format.PROMETHEUS)
    (folder / "rules.yaml").write_text(rules, encoding="utf-8")
    expressions = [
        {
            "expr": f'round(sum(inferslo:sli_bad:rate{{slo="{slo}"}}'
            " / inferslo:sli_total:rate), 0.001)",
            "eval_time": "30m",
            "exp_samples": [{"labels": "{}", "value": value}],
        }
        for slo, value in expected.items()
    ]
    series = [{"series": name, "values": values} for name, values in SERIES.items()]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": expressions}
    tests = {"rule_files": ["rules.yaml"], "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_sloth(tmp_path: Path) -> None:
    bad_ratios(SLOTH, tmp_path, {"rate": 0.05, "increase": 0.05, "raw": 0.05})


def test_openslo(tmp_path: Path) -> None:
    bad_ratios(OPENSLO, tmp_path, {"good": 0.05, "mean": 0.05, "value": 1})
