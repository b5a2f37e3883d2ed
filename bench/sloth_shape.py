"""Rules of the shape that Sloth 0.16 generates, to compare ours with on the same data.

Not Sloth's output (Sloth is a Go program and is not run here): the same series, windows, factors
and expressions, as read in its source and examples: eight ratios (the seven alert windows from the
raw counters, the period as the mean of 5-minute ratios), seven series about the SLO, two alerts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from inferslo.rules.model import Alert, Group, Recording

WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
PERIOD = "30d"
PAGE = (("5m", "1h", Decimal("14.4")), ("30m", "6h", Decimal(6)))
TICKET = (("2h", "1d", Decimal(3)), ("6h", "3d", Decimal(1)))


@dataclass(frozen=True, slots=True)
class SlothSlo:
    """errors, total: PromQL of events a second over a window, "5m" and so on."""

    service: str
    name: str
    objective: Decimal  # 0..1
    errors: Callable[[str], str]
    total: Callable[[str], str]

    @property
    def labels(self) -> dict[str, str]:
        identity = f"{self.service}-{self.name}"
        return {"sloth_id": identity, "sloth_service": self.service, "sloth_slo": self.name}

    @property
    def selector(self) -> str:
        return "{" + ", ".join(f'{k}="{v}"' for k, v in self.labels.items()) + "}"


def groups(slo: SlothSlo, interval: int) -> tuple[Group, Group, Group]:
    """The three groups that Sloth makes of one SLO."""
    identity = slo.labels["sloth_id"]
    return (
        Group(f"sloth-slo-sli-recordings-{identity}", interval, tuple(_ratios(slo))),
        Group(f"sloth-slo-meta-recordings-{identity}", interval, tuple(_about(slo))),
        Group(f"sloth-slo-alerts-{identity}", interval, tuple(_alerts(slo))),
    )


def _ratios(slo: SlothSlo) -> Iterator[Recording]:
    for window in WINDOWS:
        expression = f"({slo.errors(window)})\n/\n({slo.total(window)})\n"
        yield Recording(_ratio(window), expression, {**slo.labels, "sloth_window": window})
    series = f"{_ratio('5m')}{slo.selector}[{PERIOD}]"
    yield Recording(
        _ratio(PERIOD),
        f"sum_over_time({series})\n/ ignoring (sloth_window)\ncount_over_time({series})\n",
        {**slo.labels, "sloth_window": PERIOD},
    )


def _about(slo: SlothSlo) -> Iterator[Recording]:
    budget = f"slo:error_budget:ratio{slo.selector}"
    of_budget = f"/ on(sloth_id, sloth_slo, sloth_service) group_left\n{budget}\n"
    expressions = {
        "slo:objective:ratio": f"vector({slo.objective})",
        "slo:error_budget:ratio": f"vector(1-{slo.objective})",
        "slo:time_period:days": "vector(30)",
        "slo:current_burn_rate:ratio": f"{_ratio('5m')}{slo.selector}\n{of_budget}",
        "slo:period_burn_rate:ratio": f"{_ratio(PERIOD)}{slo.selector}\n{of_budget}",
        "slo:period_error_budget_remaining:ratio": (
            f"1 - slo:period_burn_rate:ratio{slo.selector}"
        ),
        "sloth_slo_info": "vector(1)",
    }
    for name, expression in expressions.items():
        yield Recording(name, expression, slo.labels)


def _alerts(slo: SlothSlo) -> Iterator[Alert]:
    for severity, tiers in (("page", PAGE), ("ticket", TICKET)):
        halves = (
            f"(max({_ratio(short)}{slo.selector} > ({factor} * {1 - slo.objective}))"
            f" without (sloth_window)\nand\n"
            f"max({_ratio(long)}{slo.selector} > ({factor} * {1 - slo.objective}))"
            f" without (sloth_window))\n"
            for short, long, factor in tiers
        )
        labels = {"sloth_severity": severity, "slo": slo.name, "service": slo.service}
        yield Alert(f"Sloth-{slo.name}", "or\n".join(halves), labels, {})


def _ratio(window: str) -> str:
    return f"slo:sli_error:ratio_rate{window}"
