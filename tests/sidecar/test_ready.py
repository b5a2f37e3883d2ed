"""Which SLO file `inferslo up` judges by, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from metrics_server import serving
from vllm_pages import CAPTURES

from inferslo.sidecar.cli import main
from inferslo.sidecar.ready import with_slo
from inferslo.sidecar.settings.model import Settings
from inferslo.sidecar.settings.targets import Engine
from inferslo.slo.load import load

PAGE = (CAPTURES / "vllm-0.32.0__mid-overload.prom").read_bytes()
SLO = """
service: s
owner: o
objectives: [{name: answered, signal: availability, objective: 99}]
response: [{tier: 1, team: t, receiver: r}]
receivers: {r: {webhook: {url: "https://h/x"}}}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in; the user's state lies below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("inferslo.sidecar.settings.model._STATE_OF_A_SERVICE", tmp_path / "none")
    monkeypatch.delenv("INFERSLO_SLO", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with serving({"/metrics": PAGE, "/version": b'{"version": "0.32.0"}'}) as url:
        yield Engine(url=url)


def settings(*engines: Engine, slo: Path | None = None) -> Settings:
    return Settings(engines=engines, slo=slo, gpu="off")


def test_a_named_file_is_taken_and_nothing_is_said(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("slo.yaml").write_text("not this one")
    assert with_slo(settings(engine, slo=Path("own.yaml"))).slo == Path("own.yaml")
    assert capsys.readouterr() == ("", "")


def test_the_file_that_lies_here_comes_next(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("slo.yaml").write_text(SLO)
    assert with_slo(settings(engine)).slo == Path("slo.yaml")
    assert capsys.readouterr().out == "Judging by slo.yaml\n"


def test_else_the_catalogues_is_fitted_to_the_engine(
    engine: Engine, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = with_slo(settings(engine)).slo
    assert found == place / "state" / "inferslo" / "up.slo.yaml"
    assert found is not None
    plan = load(found)
    assert {objective.signal.name for objective in plan.objectives} >= {"availability", "ttft"}
    assert plan.selection.match[0][0] == "model_name"
    assert (plan.evaluation.interval, plan.evaluation.base) == (5, 60)
    assert not Path("slo.yaml").exists(), "nothing is left where the user works"
    out = capsys.readouterr().out
    assert str(found) in out
    assert "inferslo init" in out
    with_slo(settings(engine))  # again, over the first


def test_without_an_engine_that_answers_nothing_is_judged_and_it_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nobody = settings(Engine(url="http://127.0.0.1:1"))
    assert with_slo(nobody) == nobody
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    assert line.startswith("Not judging: ")
    assert line.endswith("name an SLO file with --slo")


def test_a_page_that_is_no_engines_is_not_judged_either(capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": b"up 1\n"}) as url:
        assert with_slo(settings(Engine(url=url))).slo is None
    assert "Not judging: " in capsys.readouterr().err


def test_beside_a_gateway_alone_the_file_here_is_taken_and_none_is_fitted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert with_slo(settings()).slo is None
    assert capsys.readouterr() == ("", "")
    Path("slo.yaml").write_text(SLO)
    assert with_slo(settings()).slo == Path("slo.yaml")


def test_a_state_folder_that_cannot_be_made_is_said_and_nothing_is_judged(
    engine: Engine, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "state").touch()  # a file: root may write into any folder
    assert with_slo(settings(engine)).slo is None
    assert "Not judging: cannot make " in capsys.readouterr().err


def test_a_state_folder_that_cannot_be_written_is_said(
    engine: Engine, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "state" / "inferslo" / "up.slo.yaml").mkdir(parents=True)
    assert with_slo(settings(engine)).slo is None
    assert "up.slo.yaml" in capsys.readouterr().err


def test_a_wrong_file_here_is_an_error_and_no_other_is_taken(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("slo.yaml").write_text(SLO.replace("availability", "availabilty"))
    code = main(["up", "--engine", engine.url, "--events", "off", "--listen", "127.0.0.1:0"])
    assert code == 2
    lines = capsys.readouterr().err.splitlines()
    assert any("slo.yaml:4:" in line and "availability" in line for line in lines), lines


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_something_else_of_that_name_is_an_error_too(
    kind: str, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("slo.yaml").mkdir() if kind == "folder" else Path("slo.yaml").symlink_to("gone")
    assert main(["up", "--engine", engine.url, "--events", "off", "--listen", "127.0.0.1:0"]) == 2
    assert "slo.yaml" in capsys.readouterr().err
