"""What became of requests, from vLLM's page: the outcomes of inferslo_requests_total."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..names import REQUESTS, Origin, Outcome
from ..reading import Gap
from .aborted import NO_HTTP, NO_REQUEST_YET, Aborted
from .draft import Draft
from .excess import SEVERAL_ENGINES, Excess, Restart
from .series import HTTP_REQUESTS, VllmPage
from .traffic import FINISHED, Traffic, finished_by_model, http_of, total

_SUCCESS = ("stop", "length", "repetition")
_REJECTIONS = "admission_rejections_total"
_FROM_OUTSIDE = "add a gateway source, or let the application report it"
_NEVER_ON_THE_PAGE = (
    Gap("requests_timeout", "here a timeout looks like any client that gave up", _FROM_OUTSIDE),
    Gap("requests_empty", "the page does not tell empty answers from others", _FROM_OUTSIDE),
)
_SEVERAL_MODELS = (
    f"several models share the page, and {HTTP_REQUESTS} does not name the model",
    "read each engine's own page",
)


class Requests:
    """Outcomes over the life of one engine. count_first: as in `Excess`."""

    def __init__(self, *, count_first: bool) -> None:
        self._errors = Excess(count_first=count_first)
        self._aborted = Aborted(count_first=count_first)

    def observe(
        self, page: VllmPage, models: Sequence[str], restart: Restart, draft: Draft
    ) -> None:
        """models: those on the page. HTTP counters name none: they serve where there is one."""
        with draft.gap_if_unusable("requests_success"):
            _success(page, draft)
        with draft.gap_if_unusable("requests_rejected"):
            _rejected(page, draft)
        for gap in _NEVER_ON_THE_PAGE:
            draft.missing(gap)
        if restart is Restart.SEVERAL or len(models) > 1:
            why = SEVERAL_ENGINES if restart is Restart.SEVERAL else _SEVERAL_MODELS
            draft.missing(Gap("requests_error", *why))
            draft.missing(Gap("requests_aborted", *why))
            return
        with draft.gap_if_unusable("requests_error", "requests_aborted"):
            traffic = _traffic(page, models[0] if models else "", restart)
            self._failed(traffic, draft)
            with draft.gap_if_unusable("requests_aborted"):
                self._aborted.observe(traffic, draft)

    def _failed(self, traffic: Traffic, draft: Draft) -> None:
        http = traffic.http
        if http is None:
            _failed_by_reason(traffic, draft)
            return
        # An answer that fails is seen by HTTP, a stream that fails half-way by its finish reason
        # alone, and many are seen by both: the greater of the two counts none twice.
        failed = max(traffic.failed_responses, traffic.finished("error"))
        value = self._errors.update(failed, traffic.restart)
        if not http.seen:
            draft.missing(Gap("requests_error", *NO_REQUEST_YET))
            return
        origin = f"max({HTTP_REQUESTS} 5xx - {_REJECTIONS}, {FINISHED} error)"
        _add(draft, traffic.model, Outcome.ERROR, value, Origin.DERIVED, origin)
        _add(
            draft, traffic.model, Outcome.INVALID, http.invalid, Origin.ENGINE,
            f"{HTTP_REQUESTS} 4xx",
        )  # fmt: skip
        draft.available("requests_error", Origin.DERIVED)


def _traffic(page: VllmPage, model: str, restart: Restart) -> Traffic:
    """Raises UnusableError."""
    reasons = finished_by_model(page).get(model, {})
    return Traffic(page, model, reasons, total(page, _REJECTIONS), http_of(page), restart)


def _success(page: VllmPage, draft: Draft) -> None:
    finished = finished_by_model(page)
    if not finished:
        draft.missing(page.gap("requests_success", [FINISHED], "use vLLM 0.8.5 or newer"))
        return
    origin = f"{page.find(FINISHED).name} {'+'.join(_SUCCESS)}"
    for model, reasons in finished.items():
        count = math.fsum(reasons.get(reason, 0.0) for reason in _SUCCESS)
        _add(draft, model, Outcome.SUCCESS, count, Origin.ENGINE, origin)
    draft.available("requests_success", Origin.ENGINE)


def _rejected(page: VllmPage, draft: Draft) -> None:
    found = page.find(_REJECTIONS)
    if not found.samples:
        remedy = "use vLLM 0.32 or newer with its Python front end"
        draft.missing(page.gap("requests_rejected", [_REJECTIONS], remedy))
        return
    for model, count in found.sums().items():
        _add(draft, model, Outcome.REJECTED, count, Origin.ENGINE, found.origin)
    draft.available("requests_rejected", Origin.ENGINE)


def _failed_by_reason(traffic: Traffic, draft: Draft) -> None:
    if "error" not in traffic.reasons:
        draft.missing(Gap("requests_error", *NO_HTTP))
        return
    origin = f"{traffic.page.find(FINISHED).name} error"
    _add(draft, traffic.model, Outcome.ERROR, traffic.reasons["error"], Origin.ENGINE, origin)
    draft.available("requests_error", Origin.ENGINE)


def _add(
    draft: Draft, model: str, outcome: Outcome, value: float, source: Origin, origin: str
) -> None:
    draft.add(REQUESTS, value, model, outcome, source, origin=origin)
