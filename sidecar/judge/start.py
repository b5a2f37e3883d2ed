"""The judge that the settings ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ...slo.load import load
from ...slo.plan import Plan
from ..settings.model import Settings
from ..settings.values import read_token
from .history import History
from .judge import Judge
from .loop import Judging
from .messenger import Messenger


@contextmanager
def judging(settings: Settings) -> Iterator[Judging]:
    """Raises SpecError for a wrong SLO file, StartError where the history cannot be kept."""
    assert settings.slo is not None  # noqa: S101
    plan = load(settings.slo)
    history = History(settings.slo_history, remembered(plan))
    messenger = _messenger(settings)
    found = Judging(Judge(plan, history), messenger)
    try:
        yield found
    finally:
        found.stop()
        history.close()


def remembered(plan: Plan) -> float:
    """Seconds of history that the plan can ask for."""
    spans = [objective.window.seconds + 86400 for objective in plan.objectives]
    spans += [burn.long for objective in plan.objectives for burn in objective.burns]
    spans += [tier.within for objective in plan.objectives for tier in objective.response]
    return max(spans)


def _messenger(settings: Settings) -> Messenger | None:
    if not settings.alertmanager:
        return None
    from ...rules.alertmanager.client import Alertmanager  # loads an HTTP client of its own

    first = settings.alertmanager[0]
    token: Path | None = first.bearer_token_file or settings.alertmanager_token_file
    return Messenger(
        Alertmanager(
            [target.url for target in settings.alertmanager],
            token=partial(read_token, token) if token else None,
            ca_file=first.ca_file,
        )
    )
