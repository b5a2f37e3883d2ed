"""Faults of SLO files: each at its place, in one line that says how to mend it, all at once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from librarytexts import LIBRARY_TEXT
from slofiles import FULL

from inferslo.slo.errors import SpecError, UnreadableError
from inferslo.slo.load import load, load_text, load_with_places
from inferslo.slo.yamlfile import parse

HEAD = "service: s\nobjectives:\n"


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_text(text, "slo.yaml")
    return list(caught.value.problems)


def fault(objective: str, rest: str = "") -> str:
    """The one problem of a file with this objective on its third line."""
    [problem] = problems(f"{HEAD}- {{name: a, objective: 99, {objective}}}\n{rest}")
    return problem


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("100", '"100" is not between 0 and 100, both excluded (100 leaves no budget at all)'),
        ("0", '"0" is not between 0 and 100, both excluded'),
        ("-1", '"-1" is not between 0 and 100, both excluded'),
        ("100.0001", '"100.0001" is not between 0 and 100, both excluded'),
        (".nan", '"nan" is not a percentage: write a number such as 99.5'),
        (".inf", '"inf" is not a percentage'),
        ("1.0", '"1.0" looks like a ratio, and an objective is in percent: 100 leaves no budget'),
        ("0.995", '"0.995" looks like a ratio, and an objective is in percent: write 99.5'),
        ("high", '"high" is not a percentage: write a number such as 99.5'),
        ("true", '"true" is not a percentage'),
        ("[99]", '"[99]" is not a percentage'),
        ("1e999999", '"inf" is not a percentage'),
        ('"99.9999999999999999999999999"', "is not a percentage"),
    ],
)
def test_an_objective_lies_between_0_and_100_percent(written: str, complaint: str) -> None:
    [problem] = problems(f"{HEAD}- {{name: a, signal: goodput, objective: {written}}}\n")

    assert problem.startswith("slo.yaml:3:30: objectives.0.objective: ")
    assert complaint in problem


@pytest.mark.parametrize(
    ("objective", "complaint"),
    [
        ("signal: tttf", '3:28: objectives.0.signal: "tttf" is not a signal: did you mean ttft?'),
        ("per: []", "3:3: objectives.0.signal: this is missing: known are agent_turn_success, "),
        ("signal: ttft", "3:3: objectives.0.threshold: this is missing: write what is too much"),
        ("signal: ttft, threshold: 2", '3:42: objectives.0.threshold: "2" has no unit: write 2s'),
        ("signal: ttft, threshold: fast", '3:42: objectives.0.threshold: "fast" is not a dur'),
        ("signal: tail_ratio, threshold: 3s", 'objectives.0.threshold: "3s" is not a number'),
        ("signal: tail_ratio, threshold: 0", 'objectives.0.threshold: "0" must be above 0'),
        (
            "signal: availability, threshold: 2s",
            "objectives.0.threshold: this means nothing here: availability counts events",
        ),
        (
            "signal: tail_ratio, budgeting: occurrences",
            (
                "objectives.0.budgeting: tail_ratio is a value, of which only bad time can be"
                " counted: write timeslices or leave the key out"
            ),
        ),
        ("signal: tail_ratio, slice_target: 9", "slice_target: this means nothing here: a slice"),
        ("signal: availability, slice_target: 9", "slice_target: this means nothing here: it bel"),
        ("signal: availability, budgeting: timeslices", "slice_target: this is missing: write wh"),
        ("signal: availability, over: 5m", "over: this means nothing here: only a value"),
        ("signal: tail_ratio, over: 1m", "over: this is shorter than the base window, 5m"),
        ("signal: availability, bad_outcomes: []", "no outcome would be bad: name at least one"),
        (
            "signal: availability, bad_outcomes: [errors]",
            'bad_outcomes: "errors" is not an outcome that can be bad: did you mean error?',
        ),
        ("signal: check", "objectives.0.check: this is missing: the signal check is told by it"),
        ("check: x, composite: {a: 0.5, b: 0.5}", "composite: this means nothing here: the sig"),
        ("composite: {a: 0.4, b: 0.5}", "composite: the weights add up to 0.9, not to 1"),
        ("composite: {a: 1}", "composite: there are too few: write at least 2"),
        ("composite: {a: 0, b: 1}", 'composite.a: "0" must be above 0'),
        ("promql: {bad: x}", "promql: write either bad and total, or value alone"),
        ("promql: {bad: x, total: y, value: z}", "promql: write either bad and total, or"),
        ("promql: {value: x}", "threshold: this is missing: write what is too much, as 0.5"),
        ("promql: {bad: x, total: y}, threshold: 5", "threshold: this means nothing here: promql"),
        ("signal: tail_ratio, class: S", "class: this means nothing here: tail_ratio is not kn"),
        ("signal: availability, class: S", 'class: "S": the file has no `classes`: declare it'),
        ("signal: availability, tenant: t", "tenant: this means nothing here: only business ev"),
        ("signal: tail_ratio, prompt_tokens: '> 9'", "prompt_tokens: this means nothing here"),
        ("signal: availability, prompt_tokens: 9", 'prompt_tokens: "9" is not a range of prompt'),
        ("signal: availability, per: [slo]", "per: slo is a label of the rules' own"),
        ("signal: availability, per: [a, a]", "per: a label is there twice: write each once"),
        ("signal: availability, per: [le]", "per.0: le is the label of buckets"),
        ("signal: availability, per: ['a b']", 'per.0: "a b" is not the name of a label'),
        ("signal: availability, per: a", 'per: "a": a list is expected here'),
        ("signal: availability, window: 5m", "window: the period must be longer than the base"),
        (
            "signal: availability, window: 30",
            'window: "30" is not a period: write a length, as in 30d, or {cal',
        ),
        ("signal: availability, window: {calendar: year}", '"year" is not a calendar: month or'),
        ("signal: availability, window: {rolling: 30d}", "window: write a length, as in 30d, or"),
        ("signal: availability, urgency: never", "\"never\" is not 'always' or 'office-hours'"),
        ("signal: availability, pages: perhaps", '"perhaps": write true or false'),
        ("signal: availability, tresh: 5", "tresh: there is no such key: did you mean thresh"),
        ("signal: availability, window:", "window: this key has no value: give it one or remove"),
        ("signal: availability, description: ''", "description: this is empty: write a text"),
        ('check: x, tenant: "a\\nb"', r'"a\nb" holds a line end or control character: write one'),
        ("signal: goodput", "signal: goodput asks for targets, and `classes` has none of any cl"),
        (
            "signal: tail_ratio, alerting: {outage: {ratio: 50}}",
            "alerting.outage: an outage pages, and this objective only tickets",
        ),
        (
            "signal: availability, alerting: {outage: {ratio: 1}}",
            "objectives.0.alerting.outage: outage",
        ),
        (
            (
                "signal: availability, alerting: {burns: [{name: x, long: 5m, short: 1h, budget: 2,"
                " severity: page}]}"
            ),
            "alerting.burns: burn x: its short window, 1h, is not shorter",
        ),
    ],
)
def test_a_fault_of_an_objective(objective: str, complaint: str) -> None:
    assert complaint in fault(objective)


@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("ownr: o", "4:1: ownr: there is no such key: did you mean owner?"),
        ("zzzzz: o", "4:1: zzzzz: there is no such key: known are alerting, canary, "),
        ("owner: 5", '4:1: owner: 5 is no text here: write it in quotes, "5"'),
        ("owner: [a]", '4:1: owner: "["a"]": one text is expected here'),
        ("match: {job: 3}", '4:9: match.job.0: 3 is no text here: write it in quotes, "3"'),
        ("match: {job: []}", "4:9: match.job: there are too few: write at least 1"),
        ("match: {le: a}", "match.le: le is the label of buckets"),
        ("match: [a]", 'match: "["a"]": KEY: VALUE pairs are expected here'),
        ("classes: {S: {tfft: 1s}}", "4:15: classes.S.tfft: there is no such key: did you mean t"),
        ("classes: {S: 5}", '4:11: classes.S: "5": KEY: VALUE pairs are expected here'),
        ("classes: {a b: {}}", 'classes.a b: "a b" is no name of a class: letters, digits, - _'),
        ("classes: {S: {ttft: 1}}", 'classes.S.ttft: "1" has no unit: write 1s or 1ms'),
        ("evaluation: {base: 30s}", "evaluation.base: 30s is less than four scrape intervals"),
        ("evaluation: {interval: 5m}", "evaluation.interval: 5m is too long: long windows"),
        ("evaluation: {interval: 500ms}", '"500ms" is not a whole number of seconds'),
        ("window: 1m", "4:1: window: the period must be longer than the base window, 5m"),
        ("response: []", "response: there are too few: write at least 1"),
        (
            "response: [{tier: 2, team: t, receiver: r}]",
            "response: nobody acts on an incident: give one tier `when: incident`",
        ),
        (
            "response: [{tier: 1, team: t, receiver: r, when: incidents}]",
            'response.0.when: "incidents" sets off no tier: did you mean incident?',
        ),
        (
            "response: [{tier: 1, team: t, receiver: r, after: 5m}]",
            "response.0.after: this tier acts on an incident at once: leave `after` out",
        ),
        (
            "response: [{tier: 1, team: t, receiver: r, times: 5}]",
            "response.0.times: this belongs to `when: repeated`, which is not there",
        ),
        (
            (
                "response: [{tier: 1, team: t, receiver: ops}]\n"
                "receivers: {opps: {webhook: {url: 'https://h'}}}"
            ),
            '4:31: response.0.receiver: "ops" is not among `receivers`: did you mean opps?',
        ),
        (
            "receivers: {r: {webhook: {url: 'https://h'}}}",
            "receivers: `response` is missing: say who acts, or name the receivers tier-1, tier-2",
        ),
        ("receivers: {r: {}}", "receivers.r: write one of pagerduty, slack, webhook, email"),
        ("receivers: {r: {pager: {}}}", "receivers.r.pager: there is no such key: did you mean p"),
        (
            "receivers: {r: {webhook: {url: 'https://me:hunter2@h'}}}",
            "receivers.r.webhook.url: the URL holds a user or password: secrets are never in",
        ),
        ("office_hours: {start: 9}", "office_hours.start: 9 is no text here: write it in quotes"),
        ("office_hours: {start: 9:00}", 'office_hours.start: "9:00" is not a time of day'),
        ("office_hours: {start: 19:00}", "office_hours: 19:00 to 18:00 is no time: start comes"),
        ("office_hours: {weekdays: mon-fri}", '"mon-fri" is not a range of days: write monday:fr'),
        ("office_hours: {weekdays: 'friday:sunday'}", "the week of Alertmanager begins on sunday"),
        ("runbook_url: https://h/{slo}", "only {alert} and {service} are filled in"),
        ("dashboard_url: h/d", '"h/d" is not a URL: write https://…'),
        ("warnings: {kv_full: loud}", "warnings.kv_full: "),
        ("alerting: {burns: []}", "alerting.burns: there are too few: write at least 1"),
    ],
)
def test_a_fault_of_the_file(rest: str, complaint: str) -> None:
    assert complaint in fault("signal: availability", f"{rest}\n")


def test_a_time_zone_is_one_that_alertmanager_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "inferslo.slo.spec.values.available_timezones"
    monkeypatch.setattr(name, lambda: {"UTC", "Europe/Berlin"})

    near = fault("signal: availability", "office_hours: {location: Berlin}\n")
    assert near.endswith('"Berlin" is not a time zone: did you mean Europe/Berlin?')
    far = fault("signal: availability", "office_hours: {location: Q}\n")
    assert far.endswith('"Q" is not a time zone: write one such as Europe/Berlin')

    monkeypatch.setattr(name, set)
    text = f"{HEAD}- {{name: a, signal: availability, objective: 99}}\n"
    plan = load_text(f"{text}office_hours: {{location: Mars/Olympus}}\n")
    assert plan.office_hours.location == "Mars/Olympus"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "slo.yaml: the file is empty: an SLO file is expected: `service`, `objectives`"),
        ("# nothing\n", "slo.yaml: the file is empty: an SLO file is expected"),
        ("- a\n", "slo.yaml:1:1: an SLO file is expected"),
        ("service: s\nobjectives: []\n", "slo.yaml:2:1: objectives: there are too few: write at"),
        ("a:\n\t- b\n", "slo.yaml:2:1: a tab stands here: indent with spaces"),
        ("a: &x b\n", "slo.yaml:1:1: "),
        (b"\xff\xfe", "slo.yaml:1:1: this is UTF-16 text"),
        ("a: \udcff\n", "slo.yaml:1:4: this is not UTF-8 text: save"),
    ],
)
def test_a_text_that_is_no_slo_file(text: str | bytes, complaint: str) -> None:
    assert problems(text)[-1].startswith(complaint)


def test_a_key_twice_is_told_and_so_is_all_else() -> None:
    assert problems(f"service: t\n{HEAD}- {{name: a, signal: goodput, objective: 100}}\n") == [
        "slo.yaml:2:1: service is set twice: remove one",
        (
            'slo.yaml:4:30: objectives.0.objective: "100" is not between 0 and 100, both excluded'
            " (100 leaves no budget at all): as in 99.5"
        ),
    ]


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    found = problems(
        """service: s
objectives:
- {name: a, signal: availability, objective: 100}
- {name: b, signal: ttft, objective: 99}
- {nam: c, signal: tpot, objective: 99}
- {name: b, signal: e2e, objective: 99, threshold: 1s, class: S}
- {name: d, signal: e2e, objective: 99, threshold: }
- 5
"""
    )

    assert [line.split(": ")[:2] for line in found] == [
        ["slo.yaml:3:35", "objectives.0.objective"],
        ["slo.yaml:4:3", "objectives.1.threshold"],
        ["slo.yaml:4:4", "objectives.1.name"],
        ["slo.yaml:5:3", "objectives.2.name"],
        ["slo.yaml:5:4", "objectives.2.nam"],
        ["slo.yaml:6:4", "objectives.3.name"],
        ["slo.yaml:6:56", "objectives.3.class"],
        ["slo.yaml:7:41", "objectives.4.threshold"],
        ["slo.yaml:8:3", "objectives.5"],
    ]


def test_the_names_of_our_own_alerts_are_taken() -> None:
    [problem] = problems(f"{HEAD}- {{name: engine, signal: availability, objective: 99}}\n")

    assert problem.startswith('slo.yaml:3:4: objectives.0.name: "engine" is the label `slo` of al')


def test_an_objective_that_is_left_no_length_is_a_fault() -> None:
    ttft = "signal: ttft, objective: 99, threshold: 2s"

    [problem] = problems(
        f"{HEAD}- {{name: a, {ttft}}}\n"
        f"- {{name: b, {ttft}, prompt_tokens: '<= 9'}}\n"
        f"- {{name: c, {ttft}, prompt_tokens: '> 9'}}\n"
    )

    assert problem.startswith("slo.yaml:3:3: objectives.0.prompt_tokens: b, c claim every length")


def test_a_fault_that_objectives_share_is_told_once() -> None:
    burns = "[{name: x, long: 60d, short: 5m, budget: 2, severity: page}]"
    names = "".join(f"- {{name: {n}, signal: availability, objective: 99}}\n" for n in "abc")

    [problem] = problems(f"{HEAD}{names}alerting: {{burns: {burns}}}\n")

    assert problem.startswith("slo.yaml:6:12: alerting.burns: burn x: its long window 60d")


def test_values_of_any_kind_stay_on_one_short_line() -> None:
    problem = fault(f'signal: "{"x" * 1500}\\n\\e[31m"')

    assert len(problem) < 1100
    assert problem.isprintable()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_no_value_anywhere_is_worse_than_a_fault(data: st.DataObject) -> None:
    """Every key takes a turn: the outcome is a plan or lines, never another exception."""
    document: Any = parse(FULL.encode(), "full.yaml", "").values
    way = data.draw(st.sampled_from(list(ways(document))))
    place = document
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = data.draw(ANYTHING)
    assert all(line.isprintable() for line in outcome(yaml.safe_dump(document)))


def outcome(text: str) -> tuple[str, ...]:
    try:
        load_text(text)
    except SpecError as error:
        return error.problems
    return ()


def ways(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every value in a document."""
    if way:
        yield way
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from ways(value[key], (*way, key))


def test_a_file_that_cannot_be_read_is_another_matter(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"none\.yaml cannot be read: No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(UnreadableError, match="cannot be read: Is a directory"):
        load(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"# " + b"x" * (256 << 10))
    with pytest.raises(UnreadableError, match="is larger than 256KiB: is it the right file"):
        load(large)


def test_objectives_stand_where_the_file_has_them(tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(
        f"{HEAD}- {{name: a, signal: ttft, objective: 99, threshold: 2s}}\n"
        "- {name: b, signal: availability, objective: 99}\n"
    )

    plan, document = load_with_places(path)

    assert [objective.name for objective in plan.objectives] == ["a", "b"]
    assert document.place(("objectives", 0, "threshold")) == f"{path}:3:42"
    assert document.place(("objectives", 1, "threshold")) == f"{path}:4:3"
    assert load(path) == plan


@pytest.mark.parametrize(
    ("receiver", "secret"),
    [
        ("slack: {api_url_file: 'https://hooks.slack.com/services/T/B/hunter2', channel: '#a'}",
         "file's name"),
        ("slack: 'https://hooks.slack.com/services/T/B/hunter2'", "KEY: VALUE pairs"),
        ("webhook: {url: 'https://hooks.slack.com/services/T/B/hunter2'}", "is a secret"),
        ("webhook: {url: 'https://h/?token=hunter2'}", "holds a key or token"),
        ("webhook: {url: 'hooks.slack.com/hunter2'}", "this is not a URL"),
        ("webhook: {url: 'https://h/%zz/hunter2'}", "this is not a URL"),
        ("webhook: {url: ['hunter2']}", "one text is expected"),
        ("pagerduty: {routing_key_file: hunter2hunter2hunter2hunter2hunt}", "file's name"),
    ],
)  # fmt: skip
def test_a_secret_in_a_receiver_is_refused_and_never_repeated(receiver: str, secret: str) -> None:
    file = f"{HEAD}- {{name: a, objective: 99, signal: availability}}\n{RECEIVED}{receiver}}}\n"

    [problem] = problems(file)

    assert secret in problem
    assert "hunter2" not in problem


RECEIVED = "response: [{tier: 1, team: t, receiver: r}]\nreceivers:\n  r: {"


@pytest.mark.parametrize("team", ["{{ $value }}", "{{ end }}"])
def test_what_a_template_would_be_made_of_is_refused_where_one_is_filled_in(team: str) -> None:
    """Of a label that changes with its alert's number, each number is an alert of its own."""
    signal = "signal: availability"
    assert "owner: {{ begins a template" in fault(signal, f"owner: '{team}'\n")
    tier = f"response: [{{tier: 1, team: '{team}', receiver: r}}]\n"
    assert "team: {{ begins a template" in fault(signal, tier)
    mail = f"{RECEIVED}email: {{to: '{team}', from: a@b, smarthost: 'h:25'}}}}\n"
    assert "to: {{ begins a template" in fault(signal, mail)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("up) or vector(1) or (up", ") closes what was not opened"),
        ("rate(x[$window]", "( is never closed"),
        ("sum(x[5m)]", ") closes what was not opened"),
        ('up{a="b}', "the string that begins with"),
        ("up{a='x\\'}", "the string that begins with"),
        ("rate(x[$__rate_interval])", "only $window is filled in, not $__rate_interval"),
        ("rate(x[${__range}])", "only $window is filled in, not ${__range}"),
        ("rate(x[{{.window}}])", "{{ begins a template"),
        ("0", "0 is a number, and series are expected"),
    ],
)
def test_a_query_that_no_rule_can_be_made_of(query: str, complaint: str) -> None:
    assert complaint in fault(f"promql: {{bad: {json.dumps(query)}, total: y}}")


@pytest.mark.parametrize(
    "query", ['up{a=")"}', "up{a='('} # ((", "up{a=`\\`}", 'up{a="\\")"}', "rate(x[$window])"]
)
def test_brackets_in_strings_and_comments_of_a_query_are_text(query: str) -> None:
    objective = f"{{name: a, objective: 99, promql: {{bad: {json.dumps(query)}, total: y}}}}"
    assert load_text(f"{HEAD}- {objective}\n").objectives[0].query


@pytest.mark.parametrize(
    ("objective", "complaint"),
    [
        ("signal: availability, per: [outcome]", "outcome tells good from bad"),
        ("signal: ttft, threshold: 1s, per: [tenant]", "only business events are"),
        ("signal: ttft, threshold: 1s, per: [sla_class]", "write an objective for each"),
        ("signal: kv_fragmentation, threshold: 15", '"15" is never reached'),
        ("signal: memory_growth, threshold: 200 %", '"200 %" is never reached'),
        ("signal: tail_ratio, threshold: 0.5", '"0.5" is always exceeded'),
        ("signal: availability, window: 3650d", "no Prometheus answers for so long"),
        (f"signal: availability, alerting: {{outage: {{min_bad: {10**10}}}}}", "from 1 to 10000"),
        ("signal: availability, response: [{tier: 4, team: t, receiver: r}]", "from 1 to 3"),
        (("signal: availability, response: [{tier: 1, team: t, receiver: r},"
         " {tier: 2, team: t, receiver: r, after: 1s}]"), "less than two evaluations"),
        (("signal: availability, response: [{tier: 1, team: t, receiver: r},"
         " {tier: 3, team: t, receiver: r, when: repeated, within: 1s}]"), "do not fit into 1s"),
    ],
)  # fmt: skip
def test_what_could_never_alert_or_always_would_is_refused(objective: str, complaint: str) -> None:
    assert complaint in fault(objective)


@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("match: {outcome: success}", "outcome says what became of an event"),
        ("match: {sla_class: S}", "sla_class belongs to objectives"),
        ("evaluation: {base: 1d}", "evaluation.base: 1d is too long"),
    ],
)
def test_a_file_that_would_judge_only_what_is_good_or_too_late(rest: str, complaint: str) -> None:
    assert complaint in fault("signal: availability", f"{rest}\n")


def test_a_mail_server_has_its_port() -> None:
    """Alertmanager does not start without."""
    mail = f"{RECEIVED}email: {{to: c@d, from: a@b, smarthost: mail}}}}\n"
    assert '"mail" is not HOST:PORT' in fault("signal: availability", mail)


# --- a wrong value at every key ------------------------------------------------------------------

# Of every type that YAML has, empty, negative and huge, and what people write for a length of time.
WRONG = ["", "word", "30 ms", "a:b", -1, 30, 10**30, True, [], [[1]], {"a": {"b": [1]}}]


def with_value(way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """FULL with the value there."""
    changed = parse(FULL.encode(), "full.yaml", "").values
    place: Any = changed
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return changed


# One way to each key of a file that has every key: tests/slo/test_spec.py holds FULL to that.
WAYS = list(
    {
        tuple(key for key in way if isinstance(key, str)) or way: way
        for way in ways(parse(FULL.encode(), "full.yaml", "").values)
    }.values()
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: ".".join(map(str, way)))
def test_a_wrong_value_at_any_key_is_told_there_in_words_of_ours(way: tuple[Any, ...]) -> None:
    faulty = 0
    for value in WRONG:
        try:
            load_text(json.dumps(with_value(way, value)))
        except SpecError as error:
            faulty += 1
            for problem in error.problems:
                assert not LIBRARY_TEXT.search(problem), problem
                assert "docs/slo.md" not in problem, problem  # what nobody thought of
                assert re.match(r"slo\.yaml:1:\d+: [a-z_]+[.:]", problem), problem
    assert faulty >= 3


LEAVES = [way for way in WAYS if not any(other[:-1] == way for other in WAYS)]


@pytest.mark.parametrize("way", LEAVES, ids=lambda way: ".".join(map(str, way)))
def test_a_value_that_a_comment_took_is_asked_for_in_quotes(way: tuple[Any, ...]) -> None:
    text = yaml.dump(with_value(way, "TAKEN"), width=999).replace("TAKEN", "#ops")

    assert any(
        f"{'.'.join(map(str, way))}: this" in problem and 'write it in quotes, "#ops"' in problem
        for problem in problems(text)
    )


@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("response: [{tier: 4, team: t, receiver: r}]", '"4": write a whole number from 1 to 3'),
        (
            "response: [{tier: 1, team: t, receiver: r, after: 30}]",
            '"30" has no unit: write 30s or',
        ),
        ("window: month", '"month" is not a period: write a length, as in 30d, or {calendar: mon'),
        ("evaluation: {base: 5 m}", '"5 m" holds a space: write 5m'),
        ("evaluation: {base: -5}", '"-5" is not a duration: write 30s, 5m, 1h30m or 30d'),
        ("evaluation: {base: 1.5s}", '"1.5s" is not a whole number of seconds: write 30s'),
        ("classes: {S: {ttft: 2500 ms}}", '"2500 ms" holds a space: write 2500ms'),
        ("owner: yes\nmatch: {job: true}", 'true is no text here: write it in quotes, "true"'),
        ("canary:\n  label:x\n  canary:y", "a space is missing after the colon: write `label: x`"),
        ("response:\n  -tier: 1", "a space is missing after the dash: write `- tier`"),
        ("response: {tier: 1}", "a list is expected here: begin each item with `- `, or write [a"),
        ("warnings: {kv_full: loud}", "write off, or as the warning has it a number, as 0.9 or"),
        ("receivers: {r: {slack: secret:x}}", '"…": KEY: VALUE pairs are expected here'),
    ],
)
def test_the_forms_that_are_right_are_told(rest: str, complaint: str) -> None:
    assert complaint in fault("signal: availability", f"{rest}\n")
