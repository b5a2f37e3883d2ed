"""Texts of alerts are those that a real Prometheus fills in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import chat_plan
from promtool import promtool

from inferslo.rules import causes
from inferslo.rules.alerts import patient, urgent
from inferslo.rules.compile import watchdog
from inferslo.rules.model import Alert
from inferslo.sidecar.judge.texts import fill

VALUES = (
    "0", "1", "-1", "0.5", "-0.25", "1e-9", "-1e-9", "0.0123456789", "0.99995", "1.5", "9.9999",
    "59.999", "-59.999", "60", "61.7", "3600", "86399", "90061", "-90061", "999.96", "1000",
    "1234567", "999999.5", "1e18", "123456789.125", "4", "12", "NaN", "Inf", "-Inf",
)  # fmt: skip
LABELS = {
    "service": "s", "slo": "first-token", "tenant": "a<b>&\"c\" {{ $value }}", "engine": "e",
    "instance": "pod-1:9400", "model_name": "m",
}  # fmt: skip
FORMS = (
    "{{ $value }}", "{{ $value | humanize }}", "{{ $value | humanizeDuration }}",
    "{{ $value | humanizePercentage }}", '{{ "{{" }} as it is',
    "{{ $labels.tenant }}, {{ $labels.nobody }}",
    "{{ if ge $value 0.5 }}much: {{ $value }}{{ else }}little{{ end }}",
)  # fmt: skip


def told() -> Iterator[Alert]:
    """Every alert that the judge tells of."""
    plan = chat_plan()
    yield watchdog(plan)
    rules = [rule for group in causes.groups(plan) for rule in group.rules]
    yield from (rule for rule in rules if isinstance(rule, Alert))
    for objective in plan.objectives:
        for each in (*urgent(plan, objective), *patient(plan, objective)):
            yield each.alert


def templates() -> list[str]:
    """Every annotation of every alert, once; and every form."""
    texts = (text for alert in told() for text in alert.annotations.values())
    return list(dict.fromkeys([*FORMS, *texts]))


@pytest.mark.promtool
def test_every_text_is_filled_in_as_prometheus_does(tmp_path: Path) -> None:
    texts = templates()
    assert len(texts) > 50
    rules = [
        {"alert": f"A{n}", "expr": "m", "annotations": {"text": text}}
        for n, text in enumerate(texts)
    ]
    tests = [_test(value, texts) for value in VALUES]
    write(tmp_path / "rules.yaml", {"groups": [{"name": "g", "rules": rules}]})
    write(tmp_path / "test.yaml", {"rule_files": ["rules.yaml"], "tests": tests})
    ran = subprocess.run(
        [promtool(), "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[:4000]


def _test(value: str, texts: list[str]) -> dict[str, Any]:
    return {
        "name": value,
        "interval": "1m",
        "input_series": [{"series": f"m{{{inside()}}}", "values": value}],
        "alert_rule_test": [
            {
                "alertname": f"A{n}",
                "eval_time": "0m",
                "exp_alerts": [
                    {
                        "exp_labels": LABELS,
                        "exp_annotations": {"text": fill(text, float(value), LABELS)},
                    }
                ],
            }
            for n, text in enumerate(texts)
        ],
    }


def inside() -> str:
    quoted = ((k, v.replace("\\", "\\\\").replace('"', '\\"')) for k, v in LABELS.items())
    return ",".join(f'{label}="{value}"' for label, value in quoted)


def write(path: Path, document: Any) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def test_nothing_of_a_template_is_left() -> None:
    """A form that is new to the rules is one that fill() has to learn."""
    for alert in told():
        for name, text in alert.annotations.items():
            left = fill(text.replace('{{ "{{" }}', ""), 0.5, LABELS | {"tenant": "t"})
            assert "{{" not in left, (alert.alert, name)
