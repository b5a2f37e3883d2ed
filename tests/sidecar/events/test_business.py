"""Business: counting, idempotency, durability; everything against a real journal."""

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferslo.sidecar.events.business import Business, BusyError, Result
from inferslo.sidecar.events.journal import Journal, JournalError, JournalWriteError, Memory
from inferslo.sidecar.events.model import Event, parse
from inferslo.sidecar.events.tally import Limits

RECEIVED = "inferslo_events_received_total"
REGENERATIONS = "inferslo_regenerations_total"
WIDE = Limits(label_values=100, series=1000)
NARROW = Limits(label_values=2, series=1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


@contextmanager
def counting(path: Path, limits: Limits = WIDE) -> Iterator[Business]:
    business = Business(Journal(path), limits)
    try:
        yield business
    finally:
        business.close()


def regenerate(app: str = "", id: str | None = None) -> Event:
    return parse({"type": "regenerate", "app": app, "id": id})


def turn(outcome: str, **common: Any) -> Event:
    return parse({"type": "agent_turn", "outcome": outcome, **common})


def totals(business: Business, family: str) -> dict[tuple[str, ...], float]:
    return {
        point.labels: point.value
        for point in business.points()
        if point.family.name == family and isinstance(point.value, float | int)
    }


def test_a_new_journal_has_received_nothing_of_each_kind(path: Path) -> None:
    with counting(path) as business:
        assert totals(business, RECEIVED) == {("accepted",): 0, ("duplicate",): 0, ("invalid",): 0}
        assert totals(business, REGENERATIONS) == {}


def test_the_size_of_the_journal_is_published(path: Path) -> None:
    with counting(path) as business:
        business.record([regenerate()]).result()
        (size,) = totals(business, "inferslo_events_journal_bytes").values()
    assert size > path.stat().st_size > 0


def test_an_acknowledged_event_is_in_the_next_scrape(path: Path) -> None:
    with counting(path) as business:
        for expected in range(1, 50):
            business.record([regenerate("shop")]).result()
            assert totals(business, REGENERATIONS) == {("shop", "", "", ""): expected}


def test_duplicates_in_one_batch_and_in_later_ones_are_counted_once(path: Path) -> None:
    a, b = regenerate(id="a"), regenerate(id="b")
    with counting(path) as business:
        assert business.record([a, a, b]).result() == [
            Result.ACCEPTED,
            Result.DUPLICATE,
            Result.ACCEPTED,
        ]
        assert business.record([b]).result() == [Result.DUPLICATE]
        assert totals(business, REGENERATIONS) == {("", "", "", ""): 2}
        assert totals(business, RECEIVED) == {("accepted",): 2, ("duplicate",): 2, ("invalid",): 0}


def test_events_without_an_id_all_count(path: Path) -> None:
    with counting(path) as business:
        assert business.record([regenerate()] * 3).result() == [Result.ACCEPTED] * 3
        assert totals(business, REGENERATIONS) == {("", "", "", ""): 3}


def test_the_id_alone_decides_whatever_else_the_event_says(path: Path) -> None:
    with counting(path) as business:
        business.record([regenerate("shop", id="a")]).result()
        assert business.record([turn("error", id="a")]).result() == [Result.DUPLICATE]
        assert totals(business, "inferslo_agent_turns_total") == {}


def test_totals_go_on_after_a_restart(path: Path) -> None:
    with counting(path) as business:
        business.record([regenerate("shop", id="a")], invalid=2).result()
    with counting(path) as business:
        assert totals(business, REGENERATIONS) == {("shop", "", "", ""): 1}
        assert totals(business, RECEIVED) == {("accepted",): 1, ("duplicate",): 0, ("invalid",): 2}
        assert business.record([regenerate("shop", id="a")]).result() == [Result.DUPLICATE]


def test_nothing_counts_when_the_disk_refuses_and_labels_are_not_admitted(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    journal = Journal(path)
    business = Business(journal, Limits(label_values=1, series=1000))
    journal._db.execute("PRAGMA query_only = 1")
    for _ in range(3):
        with pytest.raises(JournalWriteError, match="cannot write the event journal"):
            business.record([regenerate("a", id="1")], invalid=1).result()
    assert totals(business, REGENERATIONS) == {}
    assert totals(business, RECEIVED)[("invalid",)] == 0
    assert "readonly" in str(business.fault)
    journal._db.execute("PRAGMA query_only = 0")
    assert business.record([regenerate("b", id="1")]).result() == [Result.ACCEPTED]
    assert totals(business, REGENERATIONS) == {("b", "", "", ""): 1}
    assert business.fault is None
    business.close()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_a_fault_of_ours_leaves_no_caller_waiting(path: Path) -> None:
    with counting(path) as business:
        broken: Any = [object()]
        with pytest.raises(AttributeError):
            business.record(broken).result(timeout=10)
        assert business.record([regenerate()]).result(timeout=10) == [Result.ACCEPTED]


class StuckJournal(Journal):
    """A fake of a slow disk: a real journal that waits for `free` just before each COMMIT."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reached = threading.Event()
        self.free = threading.Event()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            yield
            self.reached.set()
            self.free.wait()


def test_nothing_is_acknowledged_or_published_before_the_commit(path: Path) -> None:
    journal = StuckJournal(path)
    business = Business(journal, WIDE)
    future = business.record([regenerate()])
    journal.reached.wait()
    assert not future.done()
    assert totals(business, REGENERATIONS) == {}
    journal.free.set()
    assert future.result() == [Result.ACCEPTED]
    business.close()


def test_events_over_the_bound_are_turned_away_while_the_disk_is_slow(path: Path) -> None:
    journal = StuckJournal(path)
    business = Business(journal, WIDE, pending=3)
    first = business.record([regenerate()])
    journal.reached.wait()
    second = business.record([regenerate()] * 3)
    with pytest.raises(BusyError, match="3 events wait for the disk"):
        business.record([regenerate()])
    assert totals(business, REGENERATIONS) == {}  # a scrape does not wait
    journal.free.set()
    assert len(first.result()) + len(second.result()) == 4
    assert len(business.record([regenerate()] * 9).result()) == 9  # larger than the bound, alone
    business.close()


def test_a_caller_that_gave_up_in_the_queue_is_not_counted(path: Path) -> None:
    journal = StuckJournal(path)
    business = Business(journal, WIDE)
    first = business.record([regenerate()])
    journal.reached.wait()
    second = business.record([regenerate()])
    assert second.cancel()
    assert not first.cancel()
    journal.free.set()
    business.close()
    assert totals(business, REGENERATIONS) == {("", "", "", ""): 1}


def test_close_writes_what_waits_and_then_takes_nothing(path: Path) -> None:
    business = Business(Journal(path), WIDE)
    futures = [business.record([regenerate("shop")]) for _ in range(200)]
    business.close()
    assert all(future.result(timeout=0) == [Result.ACCEPTED] for future in futures)
    with pytest.raises(JournalWriteError, match="stopping"):
        business.record([regenerate()])
    with counting(path) as again:
        assert totals(again, REGENERATIONS) == {("shop", "", "", ""): 200}


def test_close_does_not_wait_for_a_dead_disk(path: Path) -> None:
    journal = StuckJournal(path)
    business = Business(journal, WIDE)
    future = business.record([regenerate()])
    business.close(timeout=0.05)
    assert not future.done()
    journal.free.set()
    assert future.result() == [Result.ACCEPTED]


@pytest.mark.parametrize(
    "series", [("inferslo_gone_total", ("a",)), (REGENERATIONS, ("one label of four",))]
)
def test_totals_of_another_shape_stop_the_start(path: Path, series: Any) -> None:
    journal = Journal(path)
    with journal.transaction():
        journal.save({series: 3})
    with pytest.raises(JournalError, match=r"events.db holds totals of inferslo_\w+, which"):
        Business(journal, WIDE)
    journal.close()


Ids = st.none() | st.sampled_from("abcdef")
Events = st.builds(regenerate, app=st.sampled_from(["", "x", "y", "z"]), id=Ids)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.lists(Events, max_size=5), max_size=5), max_size=3))
def test_any_interleaving_counts_each_id_once(runs: list[list[list[Event]]]) -> None:
    """Runs are separated by restarts; batches of a run may share a commit, in any grouping."""
    seen: set[str] = set()
    unnamed = duplicates = 0
    results: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for run in runs:
            with counting(Path(folder, "events.db"), NARROW) as business:
                futures: list[Future[list[Result]]] = [business.record(batch) for batch in run]
                for future in futures:
                    results.update(future.result())
            for event in (event for batch in run for event in batch):
                unnamed += event.id is None
                duplicates += event.id in seen
                seen |= {event.id} if event.id else set()
        with counting(Path(folder, "events.db"), NARROW) as business:
            counted = totals(business, REGENERATIONS)
            received = totals(business, RECEIVED)
    assert sum(counted.values()) == len(seen) + unnamed == results[Result.ACCEPTED]
    assert len({labels[0] for labels in counted} - {"", "other"}) <= 2
    assert received[("accepted",)] == len(seen) + unnamed
    assert received[("duplicate",)] == duplicates == results[Result.DUPLICATE]


def test_many_threads_share_commits_and_lose_nothing(path: Path) -> None:
    journal = Journal(path, memory=Memory())
    commits = Counter[str]()
    journal._db.set_trace_callback(lambda statement: commits.update([statement]))
    business = Business(journal, WIDE)
    results: list[Result] = []

    def post(worker: int) -> None:
        futures = [business.record([regenerate(id=f"{worker}-{n}")]) for n in range(100)]
        results.extend(result for future in futures for result in future.result())

    threads = [threading.Thread(target=post, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    business.close()
    assert results == [Result.ACCEPTED] * 800
    assert totals(business, REGENERATIONS) == {("", "", "", ""): 800}
    assert commits["COMMIT"] < 400
