"""Gateways: one adapter per kind, and the source that reads one. LiteLLM is the one known so far.

Only LiteLLM counts fallbacks to another model; others retry on replicas of the same one.
"""

from __future__ import annotations

import math

from ..exposition import Parser
from ..http import Fetcher
from ..names import GATEWAY_UP
from ..reading import Observation, Point
from .litellm import LiteLlm


class GatewaySource:
    """One gateway, read over HTTP.

    name: of the source, and the value of the label `gateway`. url: of its metrics page. interval,
    deadline: seconds; the defaults are for who reads it without a poller.
    """

    def __init__(
        self,
        name: str,
        url: str,
        fetcher: Fetcher,
        interval: float = 0.0,
        deadline: float = math.inf,
    ) -> None:
        self.name = name
        self.interval = interval
        self.deadline = deadline
        self._url = url
        self._fetcher = fetcher
        self._parser = Parser()
        self._gateway = LiteLlm(name)

    def up_point(self, up: bool) -> Point | None:
        return Point(GATEWAY_UP, (self.name,), float(up))

    def observe(self) -> Observation:
        response = self._fetcher.get(self._url)
        return self._gateway.observe(self._parser.parse(response.body, response.content_type))
