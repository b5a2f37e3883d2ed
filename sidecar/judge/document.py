"""What /v1/slo says: how each objective stands, and which alerts fire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...slo.plan import Objective
from .firing import Firing
from .gauges import group_text
from .levels import standing
from .loop import Judging
from .texts import filled, runbook
from .verdict import Verdict


def document(judging: Judging) -> dict[str, Any]:
    """The JSON document of GET /v1/slo. Times are Unix seconds, durations seconds, shares 0 to 1;
    null is unknown."""
    plan, latest, messenger = judging.judge.plan, judging.latest, judging.messenger
    alerts = latest.alerts if latest else []
    return {
        "service": plan.service,
        "owner": plan.owner,
        "interval_seconds": judging.interval,
        "base_seconds": plan.evaluation.base,
        "judged_at": latest.at if latest is not None else None,
        "fault": judging.doubt(judging.now) or None,
        "objectives": [_objective(v, alerts) for v in latest.verdicts] if latest else [],
        "alerts": [_alert(firing) for firing in alerts],
        "not_judged": dict(latest.unjudged) if latest else {},
        "history": {"fault": judging.judge.history_fault or None},
        "alertmanager": {"fault": messenger.fault or None} if messenger is not None else None,
    }


def _objective(verdict: Verdict, firing: Iterable[Firing]) -> dict[str, Any]:
    objective, spent = verdict.objective, verdict.spent
    level, word = standing(verdict)
    return {
        "name": objective.name,
        "group": dict(verdict.group),
        "group_text": group_text(verdict),
        "description": objective.description,
        "signal": objective.signal.name,
        "title": objective.signal.title,
        "threshold": None if objective.threshold is None else float(objective.threshold),
        "objective": float(objective.objective),
        "budgeting": str(objective.budgeting),
        "standing": {"level": str(level), "word": word},
        "state": None if verdict.state is None else verdict.state.name.lower(),
        "good_ratio": None if verdict.ratio is None else 1 - verdict.ratio,
        "burn_rate": verdict.burn_rate,
        "budget": {
            "remaining": spent.remaining,
            "coverage": spent.coverage,
            "failures": spent.failures,
            "since": spent.since,
        },
        "incident": verdict.incident,
        "conditions": dict(verdict.burns),
        "tiers": _tiers(objective, verdict, firing),
    }


def _tiers(
    objective: Objective, verdict: Verdict, firing: Iterable[Firing]
) -> list[dict[str, Any]]:
    """Who is told of this objective now."""
    own = {"slo": objective.name, **dict(verdict.group)}
    told = [one.labels for one in firing if own.items() <= one.labels.items()]
    return [
        {
            "tier": tier.tier,
            "team": tier.team,
            "told": sorted(each["severity"] for each in told if each["tier"] == str(tier.tier)),
        }
        for tier in objective.response
    ]


def _alert(firing: Firing) -> dict[str, Any]:
    return {
        "alert": firing.alert.alert,
        "labels": dict(firing.labels),
        "annotations": filled(firing),
        "runbook": runbook(firing),
        "since": firing.since,
        "value": firing.value,
    }
