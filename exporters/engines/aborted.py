"""Requests that the client gave up, which vLLM's Python front end counts nowhere.

By HTTP:  2xx of inference handlers - engine requests finished (choices beyond the first left out)
          - streams that a queue limit refused
By token: first tokens - finished - running - preempted, where HTTP is not counted (Ray)

Both run behind the truth, see `Excess`: ahead of it for longer than one write takes only where a
client that was reading before the first page reads for longer than `_SETTLE` of them. By HTTP,
success, error, aborted and rejected add up to all 2xx and 5xx, whatever the guesses about which is
which. What they miss, and the error measured on a real vLLM: docs/engines/vllm.md.
"""

from __future__ import annotations

import math

from ..names import REQUESTS, Origin, Outcome
from ..reading import Gap
from .draft import Draft
from .excess import Excess, Restart
from .series import HTTP_REQUESTS, VllmPage
from .traffic import FINISHED, Http, Traffic, total

SIGNAL = "requests_aborted"
NO_REQUEST_YET = (
    f"{HTTP_REQUESTS} has no sample: the engine has answered no request yet",
    "nothing to do: it comes with the first request",
)
SETTLING = (
    "the engine had answered requests before the sidecar began, and some may be in flight still",
    "wait: counting begins with the 150th read",
)
NO_HTTP = (
    f"no {HTTP_REQUESTS} of vLLM on the page",
    "use vLLM 0.8.3 or newer; under Ray add a gateway source",
)
_SETTLE = 150  # pages: five minutes, in which clients have surely read what was finished
_TTFT_COUNT = "time_to_first_token_seconds_count"


class Aborted:
    """count_first: as in `Excess`."""

    def __init__(self, *, count_first: bool) -> None:
        self._by_http_excess = Excess(count_first=count_first, settle=_SETTLE)
        self._by_token_excess = Excess(count_first=count_first)
        self._several = _SeveralPerResponse()

    def observe(self, traffic: Traffic, draft: Draft) -> None:
        page = traffic.page
        if not traffic.reasons:
            draft.missing(page.gap(SIGNAL, [FINISHED], "use vLLM 0.8.5 or newer"))
        elif page.counts_aborts:
            origin = f"{page.find(FINISHED).name} abort"
            _publish(draft, traffic, traffic.finished("abort"), Origin.ENGINE, origin)
        elif traffic.http is not None:
            self._by_http(traffic, traffic.http, draft)
        else:
            self._by_first_token(traffic, draft)

    def _by_http(self, traffic: Traffic, http: Http, draft: Draft) -> None:
        page = traffic.page
        choices = total(page, "request_params_n_sum") - total(page, "request_params_n_count")
        responses = _accounted(traffic) - choices + traffic.refused_streams
        ahead = http.answered - responses
        value = self._by_http_excess.update(ahead, traffic.restart, level=http.answered == 0)
        several = self._several.seen(page, ahead, traffic.restart)
        if not http.seen:
            draft.missing(Gap(SIGNAL, *NO_REQUEST_YET))
        elif several:
            draft.missing(Gap(SIGNAL, *_SeveralPerResponse.GAP))
        elif self._by_http_excess.settling:
            draft.missing(Gap(SIGNAL, *SETTLING))
        else:
            origin = f"{HTTP_REQUESTS} 2xx - {page.find(FINISHED).name}"
            _publish(draft, traffic, value, Origin.DERIVED, origin)

    def _by_first_token(self, traffic: Traffic, draft: Draft) -> None:
        page = traffic.page
        if not page.find(_TTFT_COUNT).samples:
            draft.missing(Gap(SIGNAL, *NO_HTTP))
            return
        # A preempted request has had its first token and waits: it is in flight too.
        preempted = min(total(page, "num_requests_waiting"), total(page, "num_preemptions_total"))
        in_flight = total(page, "num_requests_running") + preempted
        ahead = total(page, _TTFT_COUNT) - _accounted(traffic) - in_flight
        value = self._by_token_excess.update(ahead, traffic.restart)
        origin = f"{page.find(_TTFT_COUNT).name} - finished - running - preempted"
        _publish(draft, traffic, value, Origin.DERIVED, origin)


class _SeveralPerResponse:
    """Notices HTTP requests that make several engine requests: lists of prompts, beam search.

    Then more have finished than were answered, with nothing in flight, and still so a page later.
    A client that reads slowly can look the same, but only until it has read all.
    """

    GAP = (
        "one HTTP request makes several engine requests here: a list of prompts, or beam search",
        "add a gateway source, or let the application report them",
    )

    def __init__(self) -> None:
        self._found = False
        self._most = 0.0
        self._previous: float | None = None

    def seen(self, page: VllmPage, ahead: float, restart: Restart) -> bool:
        if restart is not Restart.NONE:
            self._found, self._most, self._previous = False, 0.0, None
        in_flight = total(page, "num_requests_running") + total(page, "num_requests_waiting")
        same = ahead == self._previous
        if ahead >= self._most:
            self._found = False
        elif same and in_flight == 0:
            self._found = True
        if same:
            self._most = max(self._most, ahead)
        self._previous = ahead
        return self._found


def _accounted(traffic: Traffic) -> float:
    """Engine requests finished, without those aborted or answered 5xx: the rest are answered 2xx.

    Those that the engine itself aborted (paused, refused by its connector) count as aborted. Of
    failures, as many as there are 5xx are taken to be answered so; others broke off a stream.
    """
    failed = min(traffic.finished("error"), traffic.failed_responses)
    return math.fsum(traffic.reasons.values()) - traffic.finished("abort") - failed


def _publish(draft: Draft, traffic: Traffic, value: float, source: Origin, origin: str) -> None:
    draft.add(REQUESTS, value, traffic.model, Outcome.ABORTED, source, origin=origin)
    draft.available(SIGNAL, source)
