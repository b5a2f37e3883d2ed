"""One story on a real LiteLLM proxy: what the sidecar would publish against the test's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from e2e.litellm import LiteLlmProxy, Upstream
from e2e.processes import wait_until
from e2e.prometheus import prometheus
from e2e.sidecar import read, sidecar

from inferslo.exporters import names
from inferslo.exporters.gateways import GatewaySource
from inferslo.exporters.http import HttpFetcher
from inferslo.exporters.names import (
    FAMILIES,
    GATEWAY_COOLDOWNS,
    GATEWAY_DEPLOYMENT_STATE,
    GATEWAY_FALLBACKS,
    GATEWAY_IN_FLIGHT,
    GATEWAY_REJECTED,
    GATEWAY_REQUESTS,
    GATEWAY_TIMEOUTS,
    GATEWAY_UPSTREAM_ATTEMPTS,
    GATEWAY_UPSTREAM_FAILURES,
    Family,
    Feed,
)
from inferslo.exporters.reading import ErrorKind, Histogram, Observation, SourceError

pytestmark = pytest.mark.e2e

PATIENCE = 60.0
COOLDOWN_SECONDS = 20  # so long that a slow machine asks again before it ends


@dataclass
class Story:
    """statuses: what the test's own client got, by model; chapters: what the sidecar saw then.

    attempts: the prompts that each upstream was asked, retries included.
    """

    url: str
    key: str
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    chapters: dict[str, Observation] = field(default_factory=dict)
    attempts: dict[str, list[str]] = field(default_factory=dict)

    def count(self, chapter: str, family: Family, *labels: str) -> float:
        """The sum of the family's points whose labels after `gateway` begin with these."""
        return total(self.chapters[chapter], family, *labels)


def total(observation: Observation, family: Family, *labels: str) -> float:
    return sum(
        point.value
        for point in observation.points
        if point.family is family and point.labels[1 : len(labels) + 1] == labels
        if not isinstance(point.value, Histogram)
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with Upstream() as primary, Upstream() as backup, Upstream() as other:
        models = {
            "primary": {"api_base": primary.url},
            "backup": {"api_base": backup.url},
            "hasty": {"api_base": other.url, "timeout": 1},
            "patient": {"api_base": other.url, "num_retries": 1},
        }
        with (
            LiteLlmProxy(tmp_path_factory.mktemp("litellm"), config(models)) as proxy,
            closing(HttpFetcher(deadline=PATIENCE, bearer_token=proxy.key)) as fetcher,
        ):
            source = GatewaySource("proxy", proxy.url + "/metrics", fetcher)
            yield tell(proxy, source, primary, backup, other)


def config(models: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    common = {"model": "openai/tiny", "api_key": "none"}
    return {
        "model_list": [
            {"model_name": name, "litellm_params": {**common, **params}}
            for name, params in models.items()
        ],
        "litellm_settings": {"callbacks": ["prometheus"], "fallbacks": [{"primary": ["backup"]}]},
        "router_settings": {
            "num_retries": 0,
            "allowed_fails": 2,
            "cooldown_time": COOLDOWN_SECONDS,
        },
    }


def tell(
    proxy: LiteLlmProxy,
    source: GatewaySource,
    primary: Upstream,
    backup: Upstream,
    other: Upstream,
) -> Story:
    story = Story(proxy.url, proxy.key)

    def ask(times: int, model: str, prompt: str) -> None:
        for _ in range(times):
            story.statuses[model, proxy.ask(model, prompt)] += 1

    def end(chapter: str) -> None:
        """LiteLLM counts a little after it answers: ready when nothing moves any more."""

        def all_counted() -> bool:
            before, now = story.chapters.get(chapter), source.observe()
            story.chapters[chapter] = now
            return now == before and total(now, GATEWAY_REQUESTS) == story.statuses.total()

        wait_until(f"{story.statuses.total()} requests counted", all_counted, PATIENCE, every=0.5)

    def primary_is_back() -> bool:
        ask(1, "primary", "are you back?")
        return "are you back?" in primary.log

    end("before the first request")
    ask(3, "primary", "good day")
    end("all well")
    primary.kill()
    ask(4, "primary", "primary is gone")
    end("primary gone")
    backup.kill()
    ask(2, "primary", "both are gone")
    end("both gone")
    ask(2, "hasty", "slow")
    ask(2, "patient", "429")
    end("slow and overloaded")
    primary.revive()
    backup.revive()
    wait_until("the cooldown ends", primary_is_back, PATIENCE, every=1)
    end("primary back")
    story.attempts = {"primary": primary.log, "backup": backup.log, "other": other.log}
    return story


def test_every_status_that_clients_got_is_published(story: Story) -> None:
    got: Counter[int] = Counter()
    for (_, status), times in story.statuses.items():
        got[status] += times
    published: Counter[int] = Counter()
    for point in story.chapters["primary back"].points:
        if point.family is GATEWAY_REQUESTS and not isinstance(point.value, Histogram):
            published[int(point.labels[2])] += int(point.value)
    assert published == got
    assert set(got) >= {200, 408, 429}


def test_nothing_is_zero_before_it_was_counted(story: Story) -> None:
    first = story.chapters["before the first request"]
    assert {point.family for point in first.points} == {GATEWAY_IN_FLIGHT}
    assert {gap.signal for gap in first.gaps} >= {
        "gateway_fallbacks_succeeded",
        "gateway_cooldowns",
    }


def test_no_fallback_while_all_is_well(story: Story) -> None:
    assert story.count("all well", GATEWAY_REQUESTS, "primary", "200") == 3
    assert story.count("all well", GATEWAY_FALLBACKS) == 0
    assert story.count("all well", GATEWAY_UPSTREAM_FAILURES) == 0


def test_each_fallback_is_counted_once(story: Story) -> None:
    fallbacks = ("primary", "backup")
    answered_by_backup = story.attempts["backup"].count("primary is gone")
    assert answered_by_backup == 4
    assert story.count("primary gone", GATEWAY_FALLBACKS, *fallbacks) == answered_by_backup
    # LiteLLM counts these requests for the model that answered.
    assert story.count("primary gone", GATEWAY_REQUESTS, "backup", "200") == answered_by_backup


def test_a_fallback_that_fails_too_is_counted_as_failed(story: Story) -> None:
    for chapter, succeeded, failed in (("primary gone", 4, 0), ("both gone", 4, 2)):
        outcomes = Counter[str]()
        for point in story.chapters[chapter].points:
            if point.family is GATEWAY_FALLBACKS and not isinstance(point.value, Histogram):
                outcomes[point.labels[4]] += int(point.value)
        assert (outcomes["succeeded"], outcomes["failed"]) == (succeeded, failed)


def test_a_cooldown_is_counted_once_under_the_name_that_clients_use(story: Story) -> None:
    assert story.count("all well", GATEWAY_COOLDOWNS) == 0
    assert story.count("primary gone", GATEWAY_COOLDOWNS, "primary") == 1
    assert story.count("primary gone", GATEWAY_COOLDOWNS) == 1


def test_timeouts_are_counted(story: Story) -> None:
    assert story.statuses["hasty", 408] == 2
    assert story.count("slow and overloaded", GATEWAY_TIMEOUTS, "hasty") == 2
    assert story.count("slow and overloaded", GATEWAY_TIMEOUTS) == 2


def test_429s_are_counted_with_their_reason(story: Story) -> None:
    for model, reason in (("patient", "RateLimitError"), ("primary", "RouterRateLimitError")):
        rejected = story.count("slow and overloaded", GATEWAY_REJECTED, model, reason)
        assert rejected == story.statuses[model, 429] > 0


def test_of_the_attempts_for_one_request_litellm_counts_one_failure(story: Story) -> None:
    """If this fails LiteLLM counts retries at last: correct the help, the gap and the docs."""
    assert story.attempts["other"].count("429") == 4
    assert story.count("slow and overloaded", GATEWAY_UPSTREAM_ATTEMPTS, "patient") == 2
    assert story.count("slow and overloaded", GATEWAY_UPSTREAM_FAILURES, "patient") == 2


def test_an_upstream_is_not_blamed_for_what_never_reached_it(story: Story) -> None:
    assert story.count("primary gone", GATEWAY_UPSTREAM_FAILURES, "backup") == 0
    assert story.count("primary gone", GATEWAY_UPSTREAM_ATTEMPTS, "backup") == 4


def test_the_state_of_a_model_follows_its_outage_and_its_recovery(story: Story) -> None:
    states = [
        story.count(chapter, GATEWAY_DEPLOYMENT_STATE, "primary")
        for chapter in ("all well", "primary gone", "primary back")
    ]
    assert states == [0, 2, 0]


def test_a_reader_without_the_key_is_told_so(story: Story) -> None:
    with closing(HttpFetcher(deadline=PATIENCE)) as fetcher, pytest.raises(SourceError) as error:
        GatewaySource("proxy", story.url + "/metrics", fetcher).observe()
    assert error.value.kind is ErrorKind.UNAUTHORIZED


def test_a_real_prometheus_answers_for_every_gateway_family(story: Story, tmp_path: Path) -> None:
    """Through the real sidecar, whose token is in a file, after all that the story told."""
    token = tmp_path / "litellm.token"
    token.write_text(story.key)
    flags = ("--litellm", f"proxy={story.url}", "--litellm-token-file", str(token), "--gpu", "off")
    families = [family for family in FAMILIES.values() if family.feed is Feed.GATEWAY]
    with (
        sidecar(tmp_path, flags=flags) as watcher,
        prometheus(tmp_path, {"sidecar": watcher.netloc}) as database,
    ):
        wait_until("the proxy to be read", lambda: _is_read(watcher.url), PATIENCE)
        at = database.wait_for_scrape("sidecar")
        found = {family.name: database.query(family.name, at) for family in families}

    assert [name for name, samples in found.items() if not samples] == []
    assert all(sample.labels["gateway"] == "proxy" for s in found.values() for sample in s)


def _is_read(url: str) -> bool:
    return read(url).series(names.GATEWAY_UP.name, gateway="proxy") != {} and (
        read(url).value(names.GATEWAY_UP.name) == 1
    )
