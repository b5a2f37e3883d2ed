"""Settings: four origins and their order, every fault told at once and where it was written."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from librarytexts import LIBRARY_TEXT

from inferslo.sidecar.errors import SettingsError
from inferslo.sidecar.settings.load import Loaded, load, load_target
from inferslo.sidecar.settings.model import FIELDS, Settings, variable
from inferslo.sidecar.settings.show import as_json, as_yaml
from inferslo.sidecar.settings.targets import Engine, Target
from inferslo.sidecar.settings.values import format_duration, parse_duration
from inferslo.slo.files import format_size

# Three values of each setting, one for each origin that a user writes to; FILES exist.
FILES = ("one.token", "two.token", "three.token")
VALUES: Mapping[str, tuple[str, str, str]] = {
    "engines": ("http://a:1", "b=http://b:1", "http://c:1/v"),
    "litellm": ("http://a:4000", "b=http://b:4000", "http://c:4000"),
    "engine_token_file": FILES,
    "litellm_token_file": FILES,
    "listen": (":1", "localhost:2", "[::1]:3"),
    "poll_interval": ("1s", "500ms", "1m"),
    "read_deadline": ("1s", "500ms", "1m"),
    "max_page_bytes": ("1MiB", "2000000", "64KiB"),
    "gpu": ("on", "off", "auto"),
    "gpu_interval": ("1s", "10", "1m30s"),
    "gpu_expected": ("1", "2", "3"),
    "host": ("off", "off", "off"),
    "host_root": ("a", "b", "c"),
    "events": ("off", "off", "off"),
    "events_journal": ("a.db", "b.db", "c.db"),
    "events_token_file": FILES,
    "events_max_body": ("2KiB", "2048", "3KiB"),
    "events_label_values_max": ("1", "2", "3"),
    "events_series_max": ("1", "2", "3"),
    "slo": ("a.yaml", "b.yaml", "c.yaml"),
    "slo_history": ("a.db", "b.db", "c.db"),
    "alertmanager": ("http://a:9093", "b=http://b:9093", "http://c:9093"),
    "alertmanager_token_file": FILES,
    "log_format": ("text", "json", "text"),
    "log_level": ("debug", "error", "warning"),
}

BESIDES = {  # without which they mean nothing
    "alertmanager": "slo: s.yaml\n",
    "alertmanager_token_file": "slo: s.yaml\nalertmanager: http://a:9093\n",
}
SEVERAL = ("engines", "litellm", "alertmanager")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files and folders of VALUES, and no setting in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("INFERSLO_")]:
        monkeypatch.delenv(name)
    for name in FILES:
        Path(name).write_text("secret\n")
    for name in VALUES["host_root"]:
        Path(name).mkdir()
    return tmp_path


def config(text: str) -> Path:
    path = Path("c.yaml")
    path.write_text(text)
    return path


def problems(flags: Mapping[str, Any] | None = None, file: str | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(flags or {}, None if file is None else config(file))
    return list(caught.value.problems)


def value(loaded: Loaded, field: str) -> object:
    return getattr(loaded.settings, field)


def expected(field: str, text: str) -> object:
    return getattr(Settings.model_validate({field: text}), field)


def test_the_origins_are_tried_for_every_setting() -> None:
    assert VALUES.keys() == FIELDS.keys()


@pytest.mark.parametrize("field", VALUES)
def test_flags_win_over_environment_over_file_over_defaults(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_flag, by_variable, by_file = VALUES[field]
    flag: str | list[str] = [by_flag] if field in SEVERAL else by_flag
    path = config(f"{field}: {json.dumps(by_file)}\n{BESIDES.get(field, '')}")

    assert value(load({}), field) == getattr(Settings(), field)
    assert field not in load({}).origins

    assert value(load({}, path), field) == expected(field, by_file)
    assert load({}, path).origins[field] == "c.yaml:1:1"

    monkeypatch.setenv(variable(field), by_variable)
    assert value(load({}, path), field) == expected(field, by_variable)
    assert load({}, path).origins[field] == variable(field)

    assert value(load({field: flag}, path), field) == expected(field, by_flag)
    assert load({field: flag}, path).origins[field].startswith("--")


def test_values_mean_what_they_say() -> None:
    path = config(
        "poll_interval: 1m30s\nread_deadline: 2\nmax_page_bytes: 64KiB\nhost: no\ngpu: off\n"
        "litellm:\n- {url: 'http://g:4000/', bearer_token_file: one.token}\n"
    )

    settings = load({"engines": ["a=http://x:8000/metrics"], "listen": ":80"}, path).settings

    assert settings.poll_interval == 90
    assert settings.read_deadline == 2
    assert settings.max_page_bytes == 65536
    assert settings.host is False
    assert settings.gpu == "off"
    assert settings.address == ("0.0.0.0", 80)
    assert settings.engines == (Engine(url="http://x:8000", name="a"),)
    assert settings.engines[0].metrics_url == "http://x:8000/metrics"
    assert settings.litellm[0].name == "g:4000"
    assert settings.token_file(settings.litellm[0]) == Path("one.token")


def test_an_engine_of_the_file_has_all_its_settings() -> None:
    path = config(
        "engines:\n- {name: a, url: 'https://x', type: vllm, kv_cache_groups: 2,"
        " bearer_token_file: one.token, insecure_skip_verify: true}\n"
    )

    [engine] = load({}, path).settings.engines

    assert engine == Engine(
        name="a",
        url="https://x",
        type="vllm",
        kv_cache_groups=2,
        bearer_token_file=Path("one.token"),
        insecure_skip_verify=True,
    )


def test_a_token_for_all_serves_those_without_one_of_their_own() -> None:
    settings = Settings(
        engines=(Engine(url="http://a"), Engine(url="http://b", bearer_token_file=Path(FILES[0]))),
        litellm=(Target(url="http://c"),),
        engine_token_file=Path(FILES[1]),
    )

    assert [settings.token_file(engine) for engine in settings.engines] == [
        Path("two.token"),
        Path("one.token"),
    ]
    assert settings.token_file(settings.litellm[0]) is None


def test_several_engines_in_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSLO_ENGINES", "a=http://x:1, http://y:2,")

    assert [engine.name for engine in load({}).settings.engines] == ["a", "y:2"]


def test_the_file_may_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSLO_CONFIG", str(config("listen: :1\n")))

    assert load({}).settings.listen == ":1"


def test_an_empty_variable_and_a_key_without_value_set_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INFERSLO_LISTEN", "")

    loaded = load({}, config("poll_interval:\n"))

    assert loaded.settings == Settings()
    assert not loaded.origins


def test_variables_that_kubernetes_sets_for_a_service_are_let_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_9400_TCP_ADDR"):
        monkeypatch.setenv(f"INFERSLO_{name}", "tcp://10.0.0.1:9400")

    assert load({}).settings == Settings()


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize(
    ("field", "name"), [("events_journal", "events.db"), ("slo_history", "slo.db")]
)
def test_journal_and_history_lie_with_the_users_state(
    field: str, name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    monkeypatch.setattr("inferslo.sidecar.settings.model._STATE_OF_A_SERVICE", place / "absent")
    assert value(load({}), field) == place / "inferslo" / name

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert value(load({}), field) == place / "absent" / name

    monkeypatch.setattr("inferslo.sidecar.settings.model._STATE_OF_A_SERVICE", place)
    assert value(load({}), field) == place / name


def test_the_history_lies_beside_the_journal_wherever_that_is(place: Path) -> None:
    moved = load({"events_journal": str(place / "volume" / "e.db")})
    assert value(moved, "slo_history") == place / "volume" / "slo.db"


@pytest.mark.parametrize(
    ("field", "text", "complaint"),
    [
        (
            "engines",
            "localhost:8000",
            '"localhost:8000" has no scheme: write "http://localhost:8000"',
        ),
        ("engines", "http//h:1", '"http//h:1" has no scheme: write "http://h:1"'),
        ("engines", "ftp://x", '"ftp://x": only http and https are read, not ftp'),
        ("engines", "http://:80", '"http://:80" has no host or a bad port: write http://HOST:PORT'),
        ("engines", "http://x:0", '"http://x:0" has no host or a bad port: write http://HOST:PORT'),
        ("engines", "http://a b", '"http://a b" has no host or a bad port: write http://HOST:PORT'),
        (
            "engines",
            "http://x/\u00e9",
            '"http://x/\u00e9": write what is not plain ASCII in the path as %XX',
        ),
        (
            "engines",
            "http://x/\x1b",
            '"http://x/\\x1b": write what is not plain ASCII in the path as %XX',
        ),
        ("engines", "a b=http://x", '"a b" is not a name: letters, digits and . _ - : only'),
        ("listen", "9400", '"9400" is not an address: write HOST:PORT, as in 127.0.0.1:9400'),
        ("listen", "a:b", '"a:b": "b" is not a port: 0 to 65535'),
        ("listen", "a:70000", '"a:70000": "70000" is not a port: 0 to 65535'),
        ("listen", "::1:80", '"::1:80" is not an address: write HOST:PORT, IPv6 as [::1]:9400'),
        (
            "poll_interval",
            "2 parsecs",
            '"2 parsecs" is not a duration: write 2s, 500ms or 1m, or a number of seconds',
        ),
        ("poll_interval", "1ms", "1ms is not between 100ms and 5m"),
        ("read_deadline", "6m", "6m is not between 100ms and 5m"),
        (
            "gpu_interval",
            "nan",
            '"nan" is not a duration: write 2s, 500ms or 1m, or a number of seconds',
        ),
        ("max_page_bytes", "1 potato", '"1 potato": write a size, as 64KiB or 2MiB'),
        ("events_max_body", "1", '"1": write at least 1024'),
        ("gpu", "maybe", '"maybe" is none: there are auto, on, off'),
        ("gpu_expected", "0", '"0": write a number above 0'),
        ("host", "maybe", '"maybe": write on or off'),
        ("host_root", "nowhere", "nowhere is not a folder"),
        ("events_token_file", "nowhere", "nowhere cannot be read: No such file or directory"),
        ("events_journal", "~nobody9/x", "~nobody9/x: there is no such home folder"),
        ("slo", "~nobody9/x", "~nobody9/x: there is no such home folder"),
        ("slo_history", "~nobody9/x", "~nobody9/x: there is no such home folder"),
        ("alertmanager", "h:9093", '"h:9093" has no scheme: write "http://h:9093"'),
        ("alertmanager_token_file", "empty", "empty holds no token: one line is expected"),
        ("events_token_file", "~nobody9/x", "~nobody9/x: there is no such home folder"),
        ("events_token_file", "empty", "empty holds no token: one line is expected"),
        ("events_token_file", "two-lines", "two-lines holds no token: one line is expected"),
        ("events_token_file", "binary", "binary is not a token: it holds other than ASCII"),
        (
            "log_level",
            "loud",
            '"loud" is none: there are debug, info, warning, error',
        ),
    ],
)
def test_a_bad_value_is_told_where_it_was_written(
    field: str, text: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("empty").write_text("\n")
    Path("two-lines").write_text("a\nb\n")
    Path("binary").write_bytes(b"\xff\xfe")
    flag = "--engine" if field == "engines" else f"--{field.replace('_', '-')}"

    assert problems({field: [text] if field in SEVERAL else text}) == [f"{flag}: {complaint}"]
    several = field in SEVERAL
    [problem] = problems({}, f"{field}: {'[' if several else ''}{json.dumps(text)}{']' * several}")
    assert problem.startswith("c.yaml:1:")
    assert problem.endswith(complaint)

    monkeypatch.setenv(variable(field), text)
    assert problems() == [f"{variable(field)}: {complaint}"]


@pytest.mark.parametrize("url", ["http://me:hunter2@x", "me:hunter2@x:80", "http://x?key=hunter2"])
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    [problem] = problems({"engines": [url]})

    assert "hunter2" not in problem


def test_unknown_keys_are_told_with_their_place_and_the_nearest_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INFERSLO_POL_INTERVAL", "1s")

    assert problems(
        {}, "listen: :1\npoll_intervall: 2s\nengines:\n- url: http://x\n  tipe: vllm\nzzz: 1\n"
    ) == [
        "INFERSLO_POL_INTERVAL is not a setting: did you mean INFERSLO_POLL_INTERVAL?",
        "c.yaml:5:3: engines.0.tipe: no such setting: did you mean type?",
        "c.yaml:2:1: poll_intervall: no such setting: did you mean poll_interval?",
        f"c.yaml:6:1: zzz: no such setting: known are {', '.join(sorted(FIELDS))}",
    ]


def test_an_unknown_engine_type_names_the_nearest() -> None:
    assert problems({}, "engines:\n- url: http://x\n  type: vlm\n") == [
        'c.yaml:3:3: engines.0.type: "vlm" is not an engine that inferslo knows: did you mean vllm?'
    ]


def test_a_target_without_url_is_told_where_it_stands() -> None:
    assert problems({}, "engines:\n- name: a\n") == [
        "c.yaml:2:3: engines.0.url: this key is missing"
    ]


def test_all_faults_of_all_origins_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSLO_POLL_INTERVAL", "x")
    monkeypatch.setenv("INFERSLO_GPUS", "on")

    found = problems({"listen": "x"}, "host: x\nhost: y\nread_deadline: x\n")

    assert len(found) == 5
    for place in ("POLL_INTERVAL:", "GPUS", "--listen:", "2:1: host is", "3:1:"):
        assert any(place in problem for problem in found), place


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [1\n", "c.yaml:1:4: the bracket that opens here is not closed with ]"),
        ("- 1\n", "c.yaml:1:1: settings are expected, one KEY: VALUE a line"),
        ("a: &b [1]\nc: *b\n", "c.yaml:2:4: aliases are not read: write the value again"),
        ("listen: \x01\n", "c.yaml:1:9: the character U+0001 stands here: remove it"),
        ("listen: 2026-13-45\n", 'c.yaml:1:1: listen: "2026-13-45" is not an address'),
        ("a: &x [*x]\n", "c.yaml:1:8: aliases are not read: write the value again"),
        ("? [a, b]\n: 1\n", "c.yaml:1:3: a key is one word"),
        ("? {a: b}\n: 1\n", "c.yaml:1:3: a key is one word"),
        ("!!set {listen}\n", "c.yaml:1:1: tags (!) are not read: write the value alone"),
        ("engines: " + "[" * 5000, "c.yaml:1:29: this is nested too deep"),
        ('engines: ["\\ud800"]\n', "c.yaml:1:11: this is not UTF-8 text"),
        ('events_journal: "/tmp/a\\0b"\n', "c.yaml:1:17: this is not UTF-8 text"),
        (f"listen: {'x' * 9999}\n", "c.yaml:1:9: this is longer than 2048 characters"),
        ('"po\\nll\\e[31m": 1\n', r"c.yaml:1:1: po\nll\x1b[31m: no such setting"),
        ("# " + "x" * (256 << 10), "c.yaml is larger than 256KiB: is it the right file?"),
        ("1: 2\n", "c.yaml:1:1: 1: no such setting"),
        ("engines: 5\n", 'c.yaml:1:1: engines: "5": write a list'),
        ("engines: [5]\n", "c.yaml:1:11: engines.0: "),
        ("<<: {host: maybe}\n", "c.yaml:1:1: <<: no such setting"),
    ],
)
def test_a_file_that_is_no_settings_file(text: str, complaint: str) -> None:
    [problem] = problems({}, text)

    assert problem.startswith(complaint)


@pytest.mark.parametrize("name", FIELDS)
def test_a_wrong_value_of_any_setting_is_told_in_words_of_ours(name: str) -> None:
    faulty = 0
    for value in ("", "word", -1, 0, 1.5, 10**30, [], [1], [[1]], {"a": 1}, [{"url": 5}]):
        Path("c.yaml").write_text(json.dumps({name: value}), encoding="utf-8")
        try:
            load({}, Path("c.yaml"))
        except SettingsError as error:
            faulty += 1
            for problem in error.problems:
                assert not LIBRARY_TEXT.search(problem), problem
                assert "docs/configuration.md" not in problem, problem  # what nobody thought of
    assert faulty >= 3


def test_a_file_that_cannot_be_read(place: Path) -> None:
    Path("latin.yaml").write_bytes(b"listen: \xe9\n")

    for path, complaint in (
        (Path("absent.yaml"), "absent.yaml cannot be read: No such file or directory"),
        (place, f"{place} cannot be read: Is a directory"),
        (Path("latin.yaml"), "latin.yaml:1:9: this is not UTF-8 text"),
    ):
        with pytest.raises(SettingsError) as caught:
            load({}, path)
        assert caught.value.problems[0].startswith(complaint)


def test_text_that_is_not_utf_8_is_refused_in_every_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert problems({"events_journal": "/tmp/\udcff"}) == [
        "--events-journal: this is not UTF-8 text"
    ]
    with pytest.raises(SettingsError, match="URL: this is not UTF-8 text"):
        load_target({"url": "http://a\udcff", "ca_file": None}, {"url": "URL"})
    monkeypatch.setenv("INFERSLO_ENGINES", "http://a\udcff")
    assert problems() == ["INFERSLO_ENGINES: this is not UTF-8 text"]


@pytest.mark.parametrize("field", ["engine_token_file", "config"])
def test_a_pipe_or_device_is_no_file_to_read(field: str) -> None:
    os.mkfifo("pipe")

    for path in (Path("pipe"), Path("/dev/zero")):
        with pytest.raises(SettingsError) as caught:
            load({}, path) if field == "config" else load({field: str(path)})
        [problem] = caught.value.problems
        assert problem.endswith(f"{path} is a pipe or device: a file is expected")


def test_a_token_file_of_any_size_is_not_read_whole() -> None:
    Path("big").write_bytes(b"x" * (64 << 10) + b"x")

    assert problems({"engine_token_file": "big"}) == [
        "--engine-token-file: big is larger than 64KiB: is it the right file?"
    ]


def test_a_long_value_does_not_bury_what_is_wrong_with_it() -> None:
    [problem] = problems({"listen": "x" * 9999})

    assert len(problem) < 1100
    assert problem.startswith("--listen: ")
    assert problem.endswith("write HOST:PORT, as in 127.0.0.1:9400")


def test_an_empty_file_sets_nothing() -> None:
    assert load({}, config("# nothing\n")).settings == Settings()


@pytest.mark.parametrize(
    ("flags", "file", "complaint"),
    [
        (
            {"gpu_expected": "8"},
            "gpu: off",
            "gpu (c.yaml:1:1) and gpu_expected (--gpu-expected): GPUs are expected and not read",
        ),
        (
            {"events": "off", "events_token_file": "one.token"},
            None,
            "events (--events) and events_token_file (--events-token-file): tokens without events",
        ),
        (
            {"engines": ["a=http://x", "a=http://y"]},
            None,
            'engines (--engine): two are named "a": give each a name of its own, NAME=URL',
        ),
        (
            {"engines": ["a=http://x", "b=http://x/metrics"]},
            None,
            "engines (--engine): http://x is there twice: its requests would be counted twice",
        ),
        (
            {"engines": ["a=http://x"], "litellm": ["a=http://y"]},
            None,
            (
                'engines (--engine) and litellm (--litellm): two are named "a":'
                " give each a name of its own, NAME=URL"
            ),
        ),
        (
            {"litellm": ["host=http://x"]},
            None,
            (
                'litellm (--litellm): "host" is the name of a source'
                " of the sidecar's own: choose another"
            ),
        ),
        (
            {"engines": ["gpu0=http://x"]},
            None,
            (
                'engines (--engine): "gpu0" is the name of a source'
                " of the sidecar's own: choose another"
            ),
        ),
        (
            {"litellm": ["a=http://x", "a=http://y"]},
            None,
            'litellm (--litellm): two are named "a": give each a name of its own, NAME=URL',
        ),
        (
            {"alertmanager": ["http://x"]},
            None,
            "alertmanager (--alertmanager) and slo: there is nothing to tell without an SLO file",
        ),
        (
            {"alertmanager_token_file": "one.token"},
            "slo: s.yaml",
            (
                "alertmanager and alertmanager_token_file (--alertmanager-token-file): a token for"
                " nobody"
            ),
        ),
        (
            {},
            (
                "slo: s\nalertmanager:\n- {url: 'http://x', bearer_token_file: one.token}\n"
                "- url: http://y"
            ),
            (
                "alertmanager (c.yaml:2:1): its peers take one token and one authority: write the"
                " same of all"
            ),
        ),
        (
            {},
            "slo: s\nalertmanager:\n- {url: 'https://x', insecure_skip_verify: true}",
            "alertmanager (c.yaml:2:1): its certificate is always verified: give ca_file",
        ),
        (
            {},
            "engines:\n- {url: 'https://x', insecure_skip_verify: true, ca_file: ca.pem}",
            "c.yaml:2:3: engines.0: x: ca_file and insecure_skip_verify contradict each other",
        ),
        (
            {},
            "engines:\n- {url: 'http://x', ca_file: ca.pem}",
            "c.yaml:2:3: engines.0: x: ca_file means nothing with http: write https://…",
        ),
        (
            {},
            "engines:\n- {url: 'https://x', ca_file: one.token}",
            "c.yaml:2:22: engines.0.ca_file: one.token holds no certificate in PEM form",
        ),
    ],
)
def test_contradictions_name_each_setting_and_where_it_was_set(
    flags: Mapping[str, Any], file: str | None, complaint: str
) -> None:
    subprocess.run(
        shlex.split("openssl req -x509 -nodes -subj /CN=x -keyout key.pem -out ca.pem"),
        check=True,
        capture_output=True,
    )

    assert problems(flags, file) == [complaint]


def test_several_contradictions_are_told_together() -> None:
    flags = {"gpu": "off", "gpu_expected": "1", "events": "off", "events_token_file": "one.token"}

    assert len(problems(flags)) == 2


def test_what_is_shown_is_a_file_that_gives_the_same_settings() -> None:
    given = {field: values[0] for field, values in VALUES.items()}
    given.update(events="on", events_journal="# odd: name.db")
    given["engines"] = "a=http://x:1,http://y:2"  # type: ignore[assignment]
    loaded = load(given)

    shown = as_yaml(loaded)

    assert load({}, config(shown)).settings == loaded.settings
    assert shown.count("# --") == len(FIELDS)


def test_what_is_shown_tells_the_origin_of_each_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSLO_LISTEN", ":1")

    loaded = load({"engines": ["http://x"]}, config("\npoll_interval: 1s\n"))

    lines = {line.partition(":")[0]: line for line in as_yaml(loaded).splitlines()}
    assert lines["engines"].endswith("# --engine")
    assert lines["listen"].endswith("# INFERSLO_LISTEN")
    assert lines["poll_interval"].endswith("# c.yaml:2:1")
    assert lines["gpu"].endswith("# default")
    document = json.loads(as_json(loaded))
    assert document["settings"]["poll_interval"] == 1
    assert document["settings"]["engines"] == [{"name": "x", "url": "http://x"}]
    assert document["origins"]["listen"] == "INFERSLO_LISTEN"
    assert document["origins"].keys() == document["settings"].keys() == FIELDS.keys()


def test_what_is_shown_holds_no_token() -> None:
    loaded = load(
        {"events_token_file": "one.token"},
        config("engines:\n- {url: 'http://x', bearer_token_file: two.token}\n"),
    )

    assert "secret" not in as_yaml(loaded) + as_json(loaded)
    assert yaml.safe_load(as_yaml(loaded))["engines"][0]["bearer_token_file"] == "two.token"


@pytest.mark.parametrize("text", ["0s", "500ms", "1.5s", "2s", "90s", "1m", "1h", "100ms"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(1 << 30, "1GiB"), (3 << 20, "3MiB"), (1536, "1536"), (2048, "2KiB"), (1000, "1000")],
)
def test_sizes_are_written_exactly(count: int, text: str) -> None:
    assert format_size(count) == text
