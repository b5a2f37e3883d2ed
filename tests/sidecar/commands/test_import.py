"""`inferslo import` and `inferslo catalogue`: where they write, what they say, how they exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferslo.sidecar.cli import main

WHOLE = """\
version: prometheus/v1
service: {service}
slos:
  - name: answered
    objective: 99.9
    sli:
      events:
        error_query: sum(rate(bad_total[{{{{.window}}}}]))
        total_query: sum(rate(all_total[{{{{.window}}}}]))
"""
LOSSY = WHOLE + "    alerting: {{name: Errors}}\n"


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def import_files(*arguments: str | Path) -> int:
    return main(["import", *map(str, arguments)])


def sloth(name: str, text: str = WHOLE, service: str = "web") -> Path:
    path = Path(name)
    path.write_text(text.format(service=service), encoding="utf-8")
    return path


def test_a_whole_import_is_printed_and_passes_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_files(sloth("sloth.yaml")) == 0
    out, err = capsys.readouterr()
    assert err == ""
    Path("slo.yaml").write_text(out, encoding="utf-8")
    assert main(["check", "slo.yaml"]) == 0


def test_what_was_left_out_is_told_and_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_files(sloth("sloth.yaml", LOSSY), "--out", "slo.yaml") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "left out: sloth.yaml:10:16: slos[0].alerting.name: alerts are named after what they are"
        " about; their label slo tells them apart\n"
    )
    assert main(["check", "slo.yaml"]) == 0


def test_a_loss_may_be_allowed_and_is_still_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_files(sloth("sloth.yaml", LOSSY), "--allow-loss") == 0
    assert capsys.readouterr().err.startswith("left out: ")


def test_an_import_without_an_objective_cannot_be_allowed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = sloth("sloth.yaml", WHOLE.replace("99.9", "100"))
    assert import_files(path, "--allow-loss") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "no objective can be imported" in err


def test_services_go_into_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    files = [sloth("a.yaml"), sloth("b.yaml", service="shop")]
    assert import_files(*files) == 2
    assert (
        "several services, web, shop: name a directory with --out DIR/" in capsys.readouterr().err
    )

    Path("slos").mkdir()
    assert import_files(*files, "--out", "slos") == 0
    assert sorted(path.name for path in Path("slos").iterdir()) == ["shop.yaml", "web.yaml"]


@pytest.mark.parametrize("service", ["web", "shop"])
def test_a_path_that_ends_in_a_slash_is_a_folder_and_is_made(service: str) -> None:
    for _ in range(2):
        assert import_files(sloth("a.yaml", service=service), "--out", "new/deep/", "--force") == 0

    assert [path.name for path in Path("new/deep").iterdir()] == [f"{service}.yaml"]


def test_a_folder_that_cannot_be_made_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("new").touch()
    assert import_files(sloth("a.yaml"), "--out", "new/") == 2
    assert capsys.readouterr().err == "inferslo: error: new cannot be made: File exists\n"


def test_a_file_is_never_overwritten_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("slo.yaml").write_text("mine", encoding="utf-8")
    arguments = (sloth("sloth.yaml"), "--out", "slo.yaml")
    assert import_files(*arguments) == 2
    assert "slo.yaml is there: write elsewhere" in capsys.readouterr().err
    assert Path("slo.yaml").read_text(encoding="utf-8") == "mine"
    assert import_files(*arguments, "--force") == 0


def test_of_several_files_none_is_written_if_one_is_there() -> None:
    Path("slos").mkdir()
    Path("slos/shop.yaml").write_text("mine", encoding="utf-8")
    files = [sloth("a.yaml"), sloth("b.yaml", service="shop")]
    assert import_files(*files, "--out", "slos") == 2
    assert [path.name for path in Path("slos").iterdir()] == ["shop.yaml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: prometheus/v9\n", '"prometheus/v9" is no known version'),
        ("a: [\n", "a value is expected here"),
        ("- a list\n", "a mapping is expected"),
    ],
)
def test_a_file_of_no_known_format_is_one_line(
    text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_files(sloth("other.yaml", text)) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("inferslo: error: other.yaml:")
    assert message in line


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert import_files("nowhere.yaml") == 2
    assert capsys.readouterr().err == (
        "inferslo: error: nowhere.yaml cannot be read: No such file or directory\n"
    )


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split(maxsplit=1) == ["chat", "somebody reads along and feels every pause."]


def test_a_file_of_the_catalogue_passes_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "chat"]) == 0
    Path("slo.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["check", "slo.yaml"]) == 0


def test_an_unknown_file_of_the_catalogue_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "chats"]) == 2
    assert capsys.readouterr().err == (
        "inferslo: error: the catalogue has no chats: did you mean chat?\n"
    )
