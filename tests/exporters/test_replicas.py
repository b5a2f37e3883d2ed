"""Start times: a restart, and several processes at one address."""

from __future__ import annotations

import itertools

import pytest

from inferslo.exporters.exposition import parse
from inferslo.exporters.replicas import Replicas, start_time


@pytest.mark.parametrize(
    ("starts", "new", "several"),
    [
        ([1, 1, 1], "100", "000"),
        ([1, 2, 3], "111", "000"),
        ([1, 2, 1, 1, 2], "11000", "00111"),
        ([1, 2, 1, 3, 3, 1], "110100", "001001"),
        ([3, 1, 1], "110", "000"),  # the clock was set back before the restart
    ],
)
def test_a_start_time_that_comes_back_is_one_of_several(
    starts: list[float], new: str, several: str
) -> None:
    replicas = Replicas()
    told = [(replicas.seen(start), replicas.several) for start in starts]
    assert "".join(str(int(is_new)) for is_new, _ in told) == new
    assert "".join(str(int(is_several)) for _, is_several in told) == several


def test_memory_of_start_times_is_bounded() -> None:
    replicas = Replicas()
    for start in itertools.chain(range(1000), range(1000)):
        assert replicas.seen(start)
    assert len(replicas._known) == 100


@pytest.mark.parametrize(
    ("page", "start"),
    [
        (b"process_start_time_seconds 1.5\n", 1.5),
        (b"", None),
        (b"process_start_time_seconds NaN\n", None),
        (b'process_start_time_seconds{a="1"} 1\nprocess_start_time_seconds{a="2"} 2\n', None),
    ],
)
def test_a_page_tells_one_start_time_or_none(page: bytes, start: float | None) -> None:
    assert start_time(parse(page)) == start
