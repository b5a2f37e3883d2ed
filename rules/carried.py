"""What alerts carry beside their condition: whose they are, and what to read first.

Labels never change while an alert fires; numbers stand in annotations only.
"""

from collections.abc import Sequence

from ..slo.plan import Plan, Severity, Tier, Urgency


def tier_of(plan: Plan, tier: int) -> Tier:
    """The tier of the response; where the file has none of that number, the last one before it,
    and where there is none before it either, the first."""
    ordered = sorted(plan.response, key=lambda each: each.tier)
    return next((each for each in reversed(ordered) if each.tier <= tier), ordered[0])


def labels(plan: Plan, slo: str, tier: int, severity: Severity) -> dict[str, str]:
    """Labels of an alert that is about no objective; `slo` says what it is about instead."""
    acts = tier_of(plan, tier)
    return {
        "service": plan.service,
        "slo": slo,
        "tier": str(acts.tier),
        "team": acts.team,
        "severity": severity.value,
        "urgency": Urgency.ALWAYS.value,
    }


def annotations(
    plan: Plan, alert: str, summary: str, impact: str, actions: Sequence[str]
) -> dict[str, str]:
    carried = {
        "summary": summary,
        "impact": impact,
        "actions": "\n".join(f"{n}. {action}" for n, action in enumerate(actions, 1)),
        "runbook_url": plan.runbook_url.replace("{alert}", alert).replace(
            "{service}", plan.service
        ),
    }
    url = {"dashboard_url": literal(plan.dashboard_url)} if plan.dashboard_url else {}
    return carried | url


def literal(text: str) -> str:
    """A text of the user's as an annotation, in which Prometheus fills templates in."""
    return text.replace("{{", '{{ "{{" }}')
