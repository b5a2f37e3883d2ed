"""Cases for rules, run by a real promtool: series in, names of the alerts that fire out.

A series is written as in rules/warnings.yaml, families in capitals, with promtool's notation of
values (`0+60x30`). Labels that are not written have the values of DEFAULTS; beside the series of a
case stand an engine, a gateway and a sidecar that answer.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inferslo.exporters import names
from inferslo.rules.model import Alert, Group, Recording

DEFAULTS = {
    "engine": "e:8000", "engine_type": "vllm", "version": "0.32.0", "model_name": "qwen3-27b",
    "source": "engine", "gpu": "0", "uuid": "GPU-1", "gateway": "g:4000", "app": "shop",
    "scope": "e:8000", "python_version": "3.13.1",
}  # fmt: skip
TARGET = {"job": "sidecar", "instance": "a:9464"}
BESIDE = {"ENGINE_INFO": "1x2000", "ENGINE_UP": "1x2000", "GATEWAY_UP": "1x2000",
          "BUILD_INFO": "1x2000"}  # fmt: skip
_KEY = re.compile(r"(?P<word>[A-Z0-9_]+)(?P<part>_[a-z]+)?(?:\{(?P<labels>.*)\})?")


@dataclass(frozen=True)
class Case:
    """alerts: names of all that fire at the time `at`."""

    name: str
    series: Mapping[str, str]
    at: str
    alerts: Sequence[str] = ()
    model: str = DEFAULTS["model_name"]
    beside: bool = True

    @property
    def takes_days(self) -> bool:
        return int(self.at.removesuffix("m")) > 1440

    def test(self) -> dict[str, Any]:
        series = {**(BESIDE if self.beside else {}), **self.series}
        return {
            "name": self.name,
            "interval": "1m",
            "input_series": [
                {"series": named(key, self.model), "values": values}
                for key, values in series.items()
                if values
            ],
            "promql_expr_test": [
                {
                    "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": self.at,
                    "exp_samples": [
                        {"labels": f'{{alertname="{alert}"}}', "value": 1}
                        for alert in sorted(self.alerts)
                    ],
                }
            ],
        }


def named(key: str, model: str = DEFAULTS["model_name"]) -> str:
    """A series as promtool reads it."""
    found = _KEY.fullmatch(key)
    if found is None:  # `up`
        return key
    family = getattr(names, found["word"])
    labels = {**DEFAULTS, "model_name": model}
    full = {label: labels.get(label, "") for label in family.labels} | TARGET
    full |= dict(re.findall(r'(\w+)="([^"]*)"', found["labels"] or ""))
    inside = ",".join(f'{label}="{value}"' for label, value in full.items() if value)
    return f"{family.name}{found['part'] or ''}{{{inside}}}"


def promtool(
    folder: Path, groups: Iterable[Group], cases: Iterable[Case], every: str = "2m"
) -> str:
    """What promtool has to say of the cases; nothing if all hold. every: between evaluations."""
    each = list(groups)
    rules = {"groups": [{"name": g.name, "rules": [_rule(rule) for rule in g.rules]} for g in each]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules, sort_keys=False))
    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": every,
        "group_eval_order": [group.name for group in each],
        "tests": [case.test() for case in cases],
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(tests, sort_keys=False))
    run = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    return "" if run.returncode == 0 else run.stdout + run.stderr


def _rule(rule: Alert | Recording) -> dict[str, Any]:
    if isinstance(rule, Recording):
        return {"record": rule.record, "expr": rule.expr, "labels": dict(rule.labels)}
    # Without annotations, which promtool would fill in at each evaluation.
    return {
        "alert": rule.alert, "expr": rule.expr, "for": f"{rule.hold}s",
        "labels": dict(rule.labels),
    }  # fmt: skip
