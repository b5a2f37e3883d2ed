"""Runs promtool and amtool on what was built, and says in plain words what failed and why.

The tools judge, nothing here does: a finding is what one of them said, put beside what the check
was for (rules/testing/case.py writes that into the expression) and what usually is behind it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .alertmanager.errors import TreeError
from .alertmanager.routing import check_routing
from .build import ALERTMANAGER, ROUTING_TEST, RULES, is_made, is_tested
from .testing.case import note_of
from .testing.reasons import REASONS, Reason

TREE, ROUTING = ALERTMANAGER, ROUTING_TEST
_TESTS = "*.test.yaml"
_TIMEOUT = 900  # seconds that one tool may take
_REBUILD = "build the folder anew (inferslo build FILE --out DIR); if that does not help, report it"
_PACKAGES = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}


class VerifyError(Exception):
    """Nothing can be verified: no such folder, or a tool is missing. Says what to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. about: the SLO or alert, "" for the file as a whole. expected and
    got are "" where the tool only says `problem`."""

    file: str
    about: str
    problem: str
    expected: str = ""
    got: str = ""
    likely: str = ""
    do: str = ""

    @property
    def text(self) -> str:
        """Some lines for people: what, expected and got, why, what to do."""
        head = f"{self.file}: {self.about}: " if self.about else f"{self.file}: "
        rest = (
            ("expected", self.expected), ("got", self.got),
            ("likely", self.likely), ("do", self.do),
        )  # fmt: skip
        lines = [f"  {name + ':':<9} {value}" for name, value in rest if value]
        return "\n".join([head + self.problem, *lines])

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    output: str


Run = Callable[[Sequence[str]], Ran]
Announce = Callable[[str], None]


def run_tool(command: Sequence[str]) -> Ran:
    """One run of promtool or amtool; what it prints on both streams, as it came.

    Raises VerifyError if it is not installed or does not end.
    """
    tool = command[0]
    if shutil.which(tool) is None:
        raise VerifyError(
            f"{tool} is not installed, and it is what verifies: apt-get install {_PACKAGES[tool]}"
            " (Debian, Ubuntu), or take it from a release at https://prometheus.io/download/ and"
            " put it on PATH"
        )
    try:
        done = subprocess.run(  # noqa: S603 - a fixed tool on files that the user names
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=_TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise VerifyError(f"{' '.join(command)} did not end within {_TIMEOUT} s") from None
    return Ran(done.returncode, done.stdout)


def verify(
    directory: Path, run: Run = run_tool, announce: Announce = lambda _: None
) -> list[Finding]:
    """Everything that is wrong with a folder that `inferslo build` wrote; [] if nothing is.

    announce: is told what is done next, in words, before it takes its time. Raises VerifyError.
    """
    rules = directory / RULES
    if not rules.is_file():
        raise VerifyError(
            f"{directory} has no {RULES}: name a folder that `inferslo build FILE --out` wrote"
        )
    if not is_made(_text(rules)):
        raise VerifyError(
            f"{rules} was not made by inferslo build, as its first line would say: name a folder"
            " that `inferslo build FILE --out` wrote"
        )
    edited = [*_edited(directory)]
    announce(f"promtool check rules {rules}")
    if findings := _checked(run, ["promtool", "check", "rules", str(rules)], rules):
        return [*edited, *findings]  # tests of rules that cannot be read say the same again
    return [*edited, *_rule_tests(directory, run, announce), *_routing(directory, run, announce)]


def _edited(directory: Path) -> Iterator[Finding]:
    """By what the tests say of which bytes they are."""
    tests = [_text(file) for file in sorted(directory.glob(_TESTS))]
    for file in filter(Path.is_file, (directory / RULES, directory / TREE)):
        if not all(is_tested(text, file.name, _text(file)) for text in tests):
            yield Finding(
                file.name, "", "this is not what inferslo build wrote: it was edited by hand, or is"
                " of another build than its tests",
                do="change the SLO file in its place, and build the folder anew (inferslo build"
                " FILE --out DIR)",
            )  # fmt: skip


def _checked(run: Run, command: Sequence[str], file: Path) -> list[Finding]:
    ran = run(command)
    if ran.code == 0:
        return []
    tool, purpose = command[0], "Prometheus" if command[0] == "promtool" else "Alertmanager"
    return [
        Finding(
            file.name, "", f"{tool} refuses the file: {_last_words(ran.output)}",
            likely=f"it was edited by hand, or this {tool} is older than what {purpose} runs",
            do=_REBUILD,
        )
    ]  # fmt: skip


_NOISE = re.compile(
    r"^\s*Checking .*?(?=FAILED:|$)|^Unit Testing:.*$|FAILED:|^\w+: error: failed to validate .*$",
    re.MULTILINE,
)


def _last_words(output: str) -> str:
    """What a tool said, on one line, without its headings."""
    lines = (" ".join(line.split()) for line in _NOISE.sub("", output).splitlines())
    return "; ".join(line for line in lines if line) or " ".join(output.split())


def _rule_tests(directory: Path, run: Run, announce: Announce) -> Iterator[Finding]:
    files = sorted(file for file in directory.glob(_TESTS) if file.name != ROUTING)
    if not files:
        yield Finding(
            "rules.test.yaml", "", "there is none, so nothing proves that the alerts fire",
            do=_REBUILD,
        )  # fmt: skip
    for file in files:
        announce(f"promtool test rules {file} (up to two minutes)")
        ran = run(["promtool", "test", "rules", str(file)])
        if ran.code != 0:
            yield from explain(file.name, ran.output)


_QUERY = re.compile(
    r'^\s*expr: (?P<expr>".*"), time: (?P<time>\S+?),\s*\n'
    r"\s*exp: (?P<exp>.*)\n\s*got: (?P<got>.*)$",
    re.MULTILINE,
)
_BROKEN = re.compile(
    r"^\s*(?:rule: (?P<rule>.+?), time: (?P<time>\S+), )?err: (?P<error>.+)$", re.MULTILINE
)


def explain(file: str, output: str) -> list[Finding]:
    """Findings from what `promtool test rules` printed; never none."""
    findings = [_missed(file, found) for found in _QUERY.finditer(output)]
    broken = {found["rule"] or "": found for found in _BROKEN.finditer(output)}
    findings += [
        Finding(
            file, rule, f"the rule cannot be evaluated (at {found['time']}): {found['error']}",
            likely="two series end up with the same labels, or a match finds several",
            do="look at the labels by which the rule sums; `per` must name every one it keeps",
        )
        for rule, found in broken.items()
    ]  # fmt: skip
    return findings or [Finding(file, "", f"promtool: {_last_words(output)}")]


def _missed(file: str, found: re.Match[str]) -> Finding:
    expr = json.loads(found["expr"])
    expected, got, at = found["exp"].strip(), found["got"].strip(), found["time"]
    note = note_of(expr)
    if note is None:  # a test of somebody's own
        return Finding(file, "", f"{expr} at {at}", _samples(expected), _samples(got))
    reason = REASONS.get(note.case, Reason())
    return Finding(
        file, note.about, f"case “{note.case}”, after {at}: {note.says}",
        expected=_samples(expected),
        got=_samples(got),
        likely=reason.of(expects=expected != "nil", gets=got != "nil"),
        do=_REBUILD,
    )  # fmt: skip


def _samples(text: str) -> str:
    """As promtool prints them; alerts by name and labels."""
    if text == "nil":
        return "nothing"
    told = re.findall(r'alertname="([^"]*)".*?severity="([^"]*)".*?tier="([^"]*)"', text)
    if told:
        return ", ".join(f"{name} ({severity}, tier {tier})" for name, severity, tier in told)
    value = re.fullmatch(r"\{\} (\S+)", text)
    return f"{float(value[1]):g}" if value else text


def _routing(directory: Path, run: Run, announce: Announce) -> list[Finding]:
    config, tests = directory / TREE, directory / ROUTING
    if not config.is_file():
        return []  # build said that the file has no receivers
    announce(f"amtool check-config {config}")
    if findings := _checked(run, ["amtool", "check-config", str(config)], config):
        return findings
    if not tests.is_file():
        return [Finding(ROUTING, "", "there is none, so nothing proves who is told", do=_REBUILD)]
    announce(f"amtool config routes test, for each alert of {tests}")
    try:
        wrong = check_routing(_text(config), _text(tests))
    except TreeError as error:
        return [Finding(ROUTING, "", str(error), do=_REBUILD)]
    return [
        Finding(
            ROUTING, each.case.labels.get("slo", ""), f"alert {each.case.name}",
            expected=", ".join(each.case.expect), got=each.got or "nobody",
            likely=f"a route above its own takes it, or {TREE} was edited by hand",
            do=_REBUILD,
        )
        for each in wrong
    ]  # fmt: skip


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
