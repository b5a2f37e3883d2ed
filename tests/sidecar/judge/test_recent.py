"""What others read of the judge's history while it judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from plans import composite, objective

from inferslo.sidecar.judge.history import History, Key, Row
from inferslo.sidecar.judge.recent import MINUTES, Recent, incidents

DAY, AT = 86400, 7200.0
AVAILABILITY = objective("availability", "99")


def recorded(file: Path, *rows: tuple[float, Row]) -> History:
    history = History(file, 31 * DAY)
    for at, row in rows:
        with history.evaluation():
            history.count([row], at)
    return history


def test_a_burn_rate_by_the_minute(tmp_path: Path) -> None:
    key = Key("availability")
    file = tmp_path / "a ?.db"  # which is no character of an address
    history = recorded(
        file,
        (AT - 3600, Row(key, 100, 100)),  # an hour ago is too long ago
        (AT - 3590, Row(key, 2, 100)),
        (AT - 3580, Row(key, 4, 100)),
        (AT - 90, Row(key, 0, 0)),
        (AT, Row(key, 1, 100)),
    )
    line = Recent(file, AT).burn(AVAILABILITY, ())
    history.close()
    assert len(line) == MINUTES
    assert line[0] == pytest.approx(3.0)
    assert line[-1] == pytest.approx(1.0)
    assert set(line[1:-1]) == {None}


def test_each_group_and_component_apart(tmp_path: Path) -> None:
    mixed = composite("90")
    group = (("tenant", "acme"),)
    rows = [
        (AT - 5, Row(Key(mixed.name, group, "negation"), 1, 10)),
        (AT - 5, Row(Key(mixed.name, group, "vague_request"), 0, 10)),
        (AT - 5, Row(Key(mixed.name, (), "negation"), 10, 10)),
    ]
    history = recorded(tmp_path / "slo.db", *rows)
    recent = Recent(tmp_path / "slo.db", AT)
    history.close()
    assert recent.burn(mixed, group)[-1] == pytest.approx(0.4)
    assert recent.burn(mixed, ())[-1] is None  # of one component nothing is known
    assert recent.burn(replace(mixed, name="other"), group)[-1] is None


def test_incidents_begin_and_end(tmp_path: Path) -> None:
    history = History(tmp_path / "slo.db", 31 * DAY)
    for at, on in ((10, False), (20, True), (30, True), (40, False), (50, True)):
        with history.evaluation():
            history.mark(Key("availability", (("tenant", "acme"),)), at, on, 25)
    found = incidents(tmp_path / "slo.db")
    history.close()
    name = "availability tenant=acme"
    assert sorted(found) == [(20, name, True), (40, name, False), (50, name, True)]


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 100])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "slo.db"
    if content is not None:
        file.write_bytes(content)
    assert set(Recent(file, AT).burn(AVAILABILITY, ())) == {None}
    assert incidents(file) == []
    assert incidents(None) == []


def test_it_reads_while_an_evaluation_is_being_written(tmp_path: Path) -> None:
    key = Key("availability")
    history = recorded(tmp_path / "slo.db", (AT, Row(key, 1, 100)))
    with history.evaluation():
        history.count([Row(key, 100, 100)], AT)
        line = Recent(tmp_path / "slo.db", AT).burn(AVAILABILITY, ())
    history.close()
    assert line[-1] == pytest.approx(1.0)
