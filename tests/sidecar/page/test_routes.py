"""The routes around the page: what they answer, and what a browser may do with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from stage import Stage, small_plan

from inferslo.sidecar.page.html import Html
from inferslo.slo.plan import Selection


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, small_plan())
    stage.play(130)
    stage.play(20, slow=0.6, bad=0.3)
    yield stage
    stage.close()


@pytest.fixture
def client(stage: Stage) -> TestClient:
    return TestClient(stage.app(), follow_redirects=False)


def test_nothing_may_be_fetched_from_elsewhere_or_stand_in_the_markup(client: TestClient) -> None:
    for path in ("/", "/runbooks/", "/runbooks/InfersloTTFTBurn"):
        response = client.get(path)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["cache-control"] == "no-store"
        assert not re.search(r"<(script|style)>|\son\w+=|\sstyle=", response.text)
        addresses = re.findall(r'(?:src|href)="([^"]*)"', response.text)
        assert addresses
        assert [a for a in addresses if not a.startswith(("/", "#"))] == []


def test_no_link_is_dead(client: TestClient) -> None:
    """Of the page, and of all runbooks."""
    page, runbooks = client.get("/").text, client.get("/runbooks/").text
    ids = set(re.findall(r'id="([^"]*)"', page))
    links = set(re.findall(r'(?:src|href)="([^"]*)"', page + runbooks))
    assert len([link for link in links if link.startswith("/runbooks/")]) > 10
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        else:
            assert client.get(link).status_code == 200, link


def test_no_link_is_dead_without_an_slo_file(tmp_path: Path) -> None:
    client = TestClient(Stage(tmp_path).app(), follow_redirects=False)
    links = set(re.findall(r'(?:src|href)="(/[^"]*)"', client.get("/").text))
    assert {link for link in links if client.get(link).status_code != 200} == set()


def test_head_answers_as_get_does(client: TestClient) -> None:
    assert client.head("/").status_code == 200
    assert client.head("/").text == ""
    for path in ("/runbooks/", "/page/page.css", "/v1/slo", "/readyz"):
        assert client.head(path).status_code == 200, path


def test_the_list_of_runbooks_is_found_without_its_slash(client: TestClient) -> None:
    answer = client.get("/runbooks")
    assert (answer.status_code, answer.headers["location"]) == (307, "/runbooks/")


def test_the_schema_is_made_without_a_word(client: TestClient) -> None:
    """FastAPI warns of two operations of one name; a warning fails a test."""
    assert "/readyz" in client.get("/openapi.json").json()["paths"]


def test_assets_are_asked_for_again_and_sent_only_if_they_changed(client: TestClient) -> None:
    first = client.get("/page/page.css")
    assert first.headers["content-type"].startswith("text/css")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/page/page.css", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["/page/api.py", "/page/..%2Fapi.py", "/page/", "/runbooks/Nope"])
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 405)


def test_a_runbook_is_html_of_its_markdown(client: TestClient) -> None:
    text = client.get("/runbooks/InfersloTTFTBurn").text
    assert "<h1>InfersloTTFTBurn</h1>" in text
    assert "<h2>Do first</h2>" in text
    assert "<td>queue</td>" in text


def test_what_an_slo_file_says_is_no_markup_in_its_runbooks(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>[x](javascript:alert(1))"
    match = Selection(match=(("model_name", (hostile,)),))
    plan = small_plan(service=hostile)
    tiers = tuple(replace(tier, team=hostile) for tier in plan.response)
    stage = Stage(tmp_path, replace(plan, selection=match, response=tiers))
    text = TestClient(stage.app()).get("/runbooks/InfersloTTFTBurn").text
    stage.close()
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert 'href="javascript' not in text


def test_parts_are_markup_throughout(stage: Stage) -> None:
    assert {type(part.html) for part in stage.parts().values()} == {Html}
