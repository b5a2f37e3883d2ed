"""The names of everything that rules make: dashboards, runbooks, routing, tests and the judge take
them from here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from ..slo.signals import SIGNALS, Signal

PREFIX = "Inferslo"


@dataclass(frozen=True, slots=True)
class Series:
    """A recorded series. All have the labels `service` and `slo` and those of the objective's
    `per`; labels are what this one has beside them."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertName:
    """An alert and what it says. There is one name for all tiers; the label `tier` tells whose."""

    name: str
    meaning: str


BAD = Series(
    "inferslo:sli_bad:rate",
    "Bad events a second over the base window. Under timeslices 1 if the slice was bad, else 0.",
    ("component (composites)",),
)
TOTAL = Series(
    "inferslo:sli_total:rate",
    "All events a second over the base window. Under timeslices 1 if there was a slice, 0 if there"
    " was nothing to judge. Absent where nothing is known.",
    ("component (composites)",),
)
CLAMPED = Series(
    "inferslo:sli_clamped:bool",
    "1 if more events were bad than there were, or fewer than none, before they were clamped: the"
    " data are wrong. Only of signals where that can be.",
)
OBJECTIVE = Series(
    "inferslo:objective:ratio",
    "The objective, constant. `period` is 30d, or month or week of the calendar.",
    ("budgeting", "signal", "period", "class"),
)
BURN_RATE = Series(
    "inferslo:burn_rate:ratio",
    "How many times too fast the budget burned over the last hour; at 1 it lasts its period.",
)
BUDGET_REMAINING = Series(
    "inferslo:budget_remaining:ratio",
    "Share of the period's budget left: 1 untouched, 0 spent, below 0 overspent. Absent below the"
    " objective's min_coverage.",
)
BUDGET_COVERAGE = Series(
    "inferslo:budget_coverage:ratio",
    "Share of the period of which anything is known; of a calendar period, of what has passed.",
)
INCIDENT = Series(
    "inferslo:incident:bool",
    "1 while a paging condition holds, 0 while none does. Absent where none can be judged, and of"
    " objectives that never page.",
)
STATE = Series(
    "inferslo:slo_state:enum",
    "0 ok; 1 no traffic; 2 no data: nothing answers; 3 signal missing: its source answers without"
    " it, as when it was renamed or needs the probe.",
)
ENGINES_DOWN = Series(
    "inferslo:engines_down:ratio",
    "One for a service, `slo` is engine: the share of its engines that is down. 1 as soon as none"
    " answers, else of those that have been away for five minutes. Absent while none is.",
)
SERIES = (
    BAD, TOTAL, CLAMPED, OBJECTIVE, BURN_RATE, BUDGET_REMAINING, BUDGET_COVERAGE, INCIDENT, STATE,
    ENGINES_DOWN,
)  # fmt: skip

_ACRONYMS = {
    "ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E", "gpu": "GPU", "kv": "KV",
    "cv": "CV", "promql": "PromQL",
}  # fmt: skip


def burn_alert(signal: Signal) -> str:
    """InfersloTTFTBurn; a signal that is a count of something going wrong is a storm."""
    if signal.name == "fallback_count":
        return f"{PREFIX}FallbackStorm"
    words = signal.name.split("_")
    return PREFIX + "".join(_ACRONYMS.get(word, word.capitalize()) for word in words) + "Burn"


BURNS = tuple(
    AlertName(burn_alert(signal), f"Objective about {signal.title}: {signal.feels}.")
    for signal in SIGNALS.values()
)
BUDGET_EXHAUSTED = AlertName(
    f"{PREFIX}BudgetExhausted", "Nothing is left of the period's error budget."
)
INCIDENT_REPEATS = AlertName(
    f"{PREFIX}IncidentRepeats", "The same objective had several incidents within some days."
)
NO_DATA = AlertName(f"{PREFIX}NoData", "Nothing that the objective could be judged by answers.")
SIGNAL_MISSING = AlertName(
    f"{PREFIX}SignalMissing", "The source answers but no longer says what the objective is about."
)
NO_TRAFFIC = AlertName(f"{PREFIX}NoTraffic", "Traffic is expected and there is none.")
ENGINE_DOWN = AlertName(f"{PREFIX}EngineDown", "Engines of the service do not answer.")
ENGINE_STALLED = AlertName(
    f"{PREFIX}EngineStalled", "An engine answers and has requests, but makes no token."
)
WATCHDOG = AlertName(
    f"{PREFIX}Watchdog", "Always fires: whoever no longer hears it knows that alerting is broken."
)
ALERTS = (
    *BURNS, BUDGET_EXHAUSTED, INCIDENT_REPEATS, NO_DATA, SIGNAL_MISSING, NO_TRAFFIC,
    ENGINE_DOWN, ENGINE_STALLED, WATCHDOG,
)  # fmt: skip
