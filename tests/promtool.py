"""What the real PromQL engine says of compiled rules: promtool plays series and answers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Format
from inferslo.slo.plan import Plan


@dataclass(frozen=True)
class Said:
    """At this time the expression, without labels, has this value; None is no sample."""

    at: str
    expr: str
    value: float | None


def promtool() -> str:
    found = shutil.which("promtool")
    assert found, "no promtool: it comes with Prometheus (make system)"
    return found


def prove(folder: Path, plan: Plan, series: Mapping[str, str], *said: Said) -> None:
    """Every answer is as said, or the test fails in promtool's words. Samples are 30 s apart.
    Early warnings, which have tests of their own, are left out: they take time."""
    groups = [group for group in compile_rules(plan) if "-warnings" not in group.name]
    (folder / "rules.yaml").write_text(write({plan.service: groups}, Format.PROMETHEUS))
    _play(folder, ["rules.yaml"], series, said, "30s")


def ask(folder: Path, series: Mapping[str, str], *said: Said, step: str) -> None:
    """As prove, of expressions alone, over series with a sample each `step`."""
    _play(folder, [], series, said, step)


def _play(
    folder: Path, rules: list[str], series: Mapping[str, str], said: Iterable[Said], step: str
) -> None:
    test = {
        "interval": step,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({each.expr}, 0.0001)",
                "eval_time": each.at,
                "exp_samples": []
                if each.value is None
                else [{"labels": "{}", "value": each.value}],
            }
            for each in said
        ],
    }
    whole = {"rule_files": rules, "evaluation_interval": step, "tests": [test]}
    (folder / "test.yaml").write_text(json.dumps(whole))
    ran = subprocess.run(
        [promtool(), "test", "rules", "test.yaml"], cwd=folder, capture_output=True, text=True
    )
    if ran.returncode:
        pytest.fail(ran.stdout + ran.stderr, pytrace=False)


def firing(alert: str, tier: int | None = None, severity: str = "") -> str:
    """How many of such alerts fire; no sample if none does."""
    more = f',tier="{tier}"' if tier else ""
    more += f',severity="{severity}"' if severity else ""
    return f'count(ALERTS{{alertname="{alert}",alertstate="firing"{more}}})'


MODEL = 'job="llm",instance="pod-1:9400",engine="pod-1:8000",model_name="qwen3-27b"'
TARGET = 'job="llm",instance="pod-1:9400"'


def alive(minutes: int) -> dict[str, str]:
    """A sidecar and its engine that answer all the time."""
    steps = minutes * 2
    return {
        f'inferslo_engine_up{{{TARGET},engine="pod-1:8000"}}': f"1x{steps}",
        f'inferslo_engine_info{{{MODEL},engine_type="vllm",version="0.32"}}': f"1x{steps}",
        f"inferslo_build_info{{{TARGET}}}": f"1x{steps}",
    }
