"""What `inferslo check --explain` says of a plan."""

from slofiles import EXAMPLE, FULL

from inferslo.slo.explain import explain
from inferslo.slo.load import load_text


def test_everything_that_was_filled_in_is_said() -> None:
    text = explain(load_text(EXAMPLE))

    for line in (
        "service checkout-assistant, owned by checkout-team",
        "  series: model_name=qwen3-27b",
        "    B: ttft 15s, urgency office-hours",
        "  prompt lengths, in tokens: <= 8000 | > 8000",
        "  rules: run every 30s over rates of 5m, scraped every 15s",
        "answered: 99.5 % answered requests",
        "  budget: 0.5 % of a rolling 30d, occurrences; claimed from a coverage of 50 %",
        "    spent: told of from 5 bad on",
        "  bad outcomes: error, timeout, aborted, rejected, empty",
        "first-token: 99 % of requests with time to first token within 2s",
        "  speaks of: all classes, prompts <= 8000",
        "  bad outcomes: aborted, timeout, which are in no histogram",
        "    outage: page, 50 % bad over 5m; at least 3 bad of 3",
        "    fast: page, 7.2 % bad (14.4 times too fast) over 1h and 5m; at least 5 bad of 10",
        "understood: 90 % of checks passed: 0.4 negation + 0.6 vague_request",
        "  tier 2: engineering at eng-oncall, when fast burn or slow burn or an incident of 30m",
        "  receivers: none declared, so no alertmanager.yaml can be written",
        "  goodput-s: needs the in-engine probe",
    ):
        assert f"{line}\n" in text


def test_runbooks_are_said_to_be_nowhere_until_their_url_is_written() -> None:
    lines = explain(load_text(EXAMPLE)).splitlines()
    assert "  runbooks: nowhere that is known: write runbook_url" in lines
    url = "https://runbooks.example/{alert}"
    lines = explain(load_text(f"runbook_url: {url}\n{EXAMPLE}")).splitlines()
    assert f"  runbooks: {url}" in lines


def test_the_table_has_the_minutes_to_each_alert() -> None:
    """A condition that an objective has not is a dash; the 14.4x tier cannot hold at 90 %."""
    rows = {
        cells[0]: cells[1:]
        for cells in map(str.split, explain(load_text(EXAMPLE)).splitlines())
        if len(cells) == 6
    }

    assert rows["first-token"] == ["2.5", "11.1", "24.1", "45.7", "45.7"]
    assert rows["steady-stream"][:3] == ["-", "-", "-"]
    assert rows["understood"][0] == "2.5"
    assert rows["understood"][1] == "-"


def test_what_a_file_sets_is_said() -> None:
    text = explain(load_text(FULL))

    for line in (
        "  early warning fragmentation: above 0.15",
        "  early warning kv_full: off",
        "  canary: revision=b against a",
        "  office hours: monday:saturday 08:00 to 17:30, Europe/Berlin",
        (
            "  budget: 0.5 % of a rolling 7d, timeslices, a slice is good with 95 % good;"
            " claimed from a coverage of 10 %"
        ),
        "  budget: 10 % of each calendar week (UTC), occurrences; claimed from a coverage of 50 %",
        "  no traffic: a ticket",
        "  response of its own:",
        "    tier 1: t at r, when incident",
        "  tier 1: t at r (tickets: m), when incident",
        "  tier 3: t at p, when 5 incidents in 1d",
        "  receiver r: slack, api_url_file /f, channel #c",
        "  speaks of: class S, prompts > 8000, one budget for each model_name",
        "  speaks of: all classes, tenant t, all lengths",
        "f: 90 % of the time with P95/P50 of end-to-end latency over 10m at most 3",
    ):
        assert f"{line}\n" in text
