"""Plans as `slo.resolve` would make them, written by hand: what reads a Plan is tested without it.

`objective("ttft")` is a sensible objective of that signal, `plan(...)` a file of some of them,
`chat_plan()` one of nearly every kind.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from inferslo.slo.plan import (
    Budgeting,
    Burn,
    ClassTarget,
    Floor,
    Objective,
    Outage,
    Plan,
    PromptRange,
    Receiver,
    Selection,
    Severity,
    Tier,
    Urgency,
    When,
    Window,
)
from inferslo.slo.signals import SIGNALS, Shape

MINUTE, HOUR, DAY = 60, 3600, 86400
MATCH = Selection(match=(("model_name", ("qwen3-27b",)),))
LONG = PromptRange(above=8000)
RESPONSE = (
    Tier(1, "operations", "ops-pager", "ops-tickets", frozenset({When.INCIDENT})),
    Tier(
        2, "engineering", "eng-oncall", "eng-tickets",
        frozenset({When.FAST_BURN, When.SLOW_BURN}), after=30 * MINUTE,
    ),
    Tier(
        3, "product", "slo-review", "slo-review",
        frozenset({When.BUDGET_EXHAUSTED, When.REPEATED}),
    ),
)  # fmt: skip
RECEIVERS = (
    Receiver("ops-pager", "pagerduty", (("routing_key_file", "/etc/alertmanager/pagerduty.key"),)),
    Receiver(
        "ops-tickets", "email",
        (("to", "ops@example.com"), ("from", "slo@example.com"), ("smarthost", "localhost:25")),
    ),
    Receiver(
        "eng-oncall", "slack",
        (("api_url_file", "/etc/alertmanager/slack.url"), ("channel", "#eng-oncall")),
    ),
    Receiver("eng-tickets", "webhook", (("url", "http://tickets.example/hook"),)),
    Receiver("slo-review", "webhook", (("url", "http://review.example/hook"),)),
    Receiver("watchdog", "webhook", (("url", "http://dead-mans-switch.example/ping"),)),
)  # fmt: skip
THRESHOLDS = {"ttft": "2.5", "tpot": "0.1", "itl": "0.1", "e2e": "30", "queue": "1"}
FAILED = ("error", "timeout", "aborted", "rejected", "empty")
GAVE_UP = ("aborted", "timeout")
OUTAGE = Outage(Decimal("0.5"), 5 * MINUTE, Floor(Decimal(3), Decimal(3)))


def burns(budget: Decimal, *, pages: bool = True) -> tuple[Burn, ...]:
    """The workbook's four of a 30 d period, those that could never hold left out."""
    page, ticket = Severity.PAGE, Severity.TICKET
    floors = {page: Floor(Decimal(5), Decimal(10)), ticket: Floor(Decimal(5), Decimal(20))}
    table = [
        ("fast", HOUR, 5 * MINUTE, "14.4", page),
        ("medium", 6 * HOUR, 30 * MINUTE, "6", page),
        ("slow", DAY, 2 * HOUR, "3", ticket),
        ("creeping", 3 * DAY, 6 * HOUR, "1", ticket),
    ]
    return tuple(
        Burn(
            name, long, short, Decimal(factor), Decimal(factor) * budget, severity, floors[severity]
        )
        for name, long, short, factor, severity in table
        if Decimal(factor) * budget < 1 and (pages or severity is ticket)
    )


def objective(signal: str, percent: str = "99", **overrides: Any) -> Objective:
    """One objective of `percent`; `overrides` are fields of Objective."""
    kind = SIGNALS[signal]
    budget = 1 - Decimal(percent) / 100
    value = kind.shape is Shape.VALUE
    threshold = Decimal(THRESHOLDS[signal]) if signal in THRESHOLDS else kind.default
    gave_up = GAVE_UP if kind.shape is Shape.LATENCY else ()
    fields: dict[str, Any] = {
        "name": signal.replace("_", "-"),
        "signal": kind,
        "objective": 1 - budget,
        "budget": budget,
        "budgeting": Budgeting.TIMESLICES if value else Budgeting.OCCURRENCES,
        "window": Window(30 * DAY),
        "selection": MATCH,
        "burns": burns(budget, pages=kind.pages),
        "outage": OUTAGE if kind.pages else None,
        "response": RESPONSE,
        "urgency": Urgency.ALWAYS,
        "description": "",
        "threshold": threshold,
        "over": (HOUR if signal == "fallback_count" else 5 * MINUTE) if value else None,
        "bad_outcomes": FAILED if signal == "availability" else gave_up,
    }
    return Objective(**fields | overrides)


def composite(percent: str = "90", **overrides: Any) -> Objective:
    checks = (("negation", Decimal("0.4")), ("vague_request", Decimal("0.6")))
    return objective("composite", percent, **{"name": "understood", "checks": checks} | overrides)


def plan(*objectives: Objective, **overrides: Any) -> Plan:
    """A file of these objectives; `overrides` are fields of Plan."""
    fields: dict[str, Any] = {
        "service": "checkout-assistant",
        "owner": "checkout-team",
        "selection": MATCH,
        "objectives": objectives,
        "response": RESPONSE,
        "receivers": RECEIVERS,
    }
    return Plan(**fields | overrides)


def chat_plan(**overrides: Any) -> Plan:
    """A file of twelve objectives: every shape, scraped, probed and posted by the application."""
    of_class_s = Selection(match=MATCH.match, sla_class="S")
    long_of_class_s = Selection(match=MATCH.match, sla_class="S", prompts=(LONG,))
    objectives = (
        objective("availability", name="answered"),
        objective("ttft", name="first-token"),
        objective(
            "ttft", "90", name="first-token-s-long",
            threshold=Decimal(10), selection=long_of_class_s,
        ),
        objective("tpot", "95", name="steady-writing"),
        objective("e2e", "95", name="whole-answer"),
        objective("queue", "95", name="admitted"),
        objective("tail_ratio", "95", name="even-answers"),
        objective("tpot_cv", "95", name="steady-stream"),
        objective("goodput", name="goodput-s", selection=of_class_s),
        objective("fallback_count", "99", name="no-fallbacks"),
        objective("agent_turn_success", "98", name="turns"),
        composite(),
    )  # fmt: skip
    fields: dict[str, Any] = {
        "classes": (
            ClassTarget("S", ttft=Decimal("0.8"), e2e=Decimal("1.2")),
            ClassTarget("B", ttft=Decimal(15), urgency=Urgency.OFFICE_HOURS),
        ),
        "class_header": "x-sla-class",
        "prompt_classes": (PromptRange(upto=8000), LONG),
    }
    return plan(*objectives, **fields | overrides)
