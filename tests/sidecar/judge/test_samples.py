"""What is held in memory: as far back as somebody asks, and no further."""

from __future__ import annotations

import pytest

from inferslo.sidecar.judge.promql import Engine
from inferslo.sidecar.judge.samples import Samples

HOUR, STEP = 3600, 10


def held(text: str, seconds: int, most: float = HOUR) -> float:
    """How far back x reaches, after so long of a sample each STEP, of those that ask `text`."""
    samples = Samples(most)
    Engine(samples).query(text)
    for at in range(0, seconds + 1, STEP):
        samples.append("page", at, [("x", frozenset(), at), ("y", frozenset(), at)])
    return max((seconds - one.at[0] for one in samples.select("x", ())), default=0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("x", 300),
        ("rate(x[10m])", 600),
        ("rate(x[10m]) > x offset 20m", 1500),
        ("max_over_time(rate(x[5m])[20m:1m])", 1500),
        ("max_over_time(rate(x[5m] offset 5m)[10m:1m] offset 5m)", 1500),
        ("max_over_time(x[1d:10m])", HOUR),
        ("x offset 1d", HOUR),
        ("rate(x[10m]) + on () rate(y[30m])", 600),
    ],
)
def test_it_is_held_as_far_back_as_somebody_asks_and_little_more(text: str, seconds: int) -> None:
    assert seconds <= held(text, 4 * HOUR) <= seconds + 60


def test_what_nobody_asks_for_is_not_held() -> None:
    assert held("y", HOUR) == 0


def test_a_series_that_is_gone_is_forgotten() -> None:
    samples = Samples(HOUR)
    Engine(samples).query("x")
    samples.append("page", 0, [("x", frozenset(), 1.0)])
    for at in range(STEP, 600, STEP):
        samples.append("page", at, [])
    assert samples.select("x", ()) == []


def test_what_is_held_for_longer_is_thinned_to_the_last_sample_of_each_minute() -> None:
    samples = Samples(HOUR, {"x": 3 * HOUR})
    query = Engine(samples).query("count_over_time(x[3h])")
    instants = Engine(samples).query("count_over_time(x[170m:10m])")
    for at in range(0, 3 * HOUR, 10):
        samples.append("page", at, [("x", frozenset(), float(at))])
    [series] = samples.select("x", ())
    assert list(series.at)[:3] == list(series.values)[:3]  # a value stays with its time
    old = [at for at in series.at if at < 2 * HOUR - 60]
    assert old == [at + 50.0 for at in range(0, 2 * HOUR - 60, 60)]
    assert len(series.at) - len(old) > HOUR / 10
    assert instants(3 * HOUR - 10) == {frozenset(): 17.0}  # none of them finds nothing
    assert query(3 * HOUR - 10) == {frozenset(): float(len(series.at))}
