"""The API documents itself: openapi.json, and a page that needs nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client
from playwright.sync_api import Page

from reviewer.accounts import permissions
from tests.cast import Cast
from tests.doors import json_of

DOORS = {
    ("post", "/api/v1/runs"),
    ("get", "/api/v1/runs/{run_id}"),
    ("post", "/api/v1/runs/{run_id}/cancel"),
    ("post", "/api/v1/runs/{run_id}/retry"),
    ("post", "/api/v1/runs/{run_id}/build"),
    ("post", "/api/v1/runs/{run_id}/settle"),
    ("post", "/api/v1/runs/{run_id}/input"),
    ("get", "/api/v1/tasks"),
    ("get", "/api/v1/tasks/{task_id}"),
    ("post", "/api/v1/tasks/{task_id}/decision"),
    ("get", "/api/v1/tasks/{task_id}/decision"),
    ("post", "/api/v1/tasks/{task_id}/claim"),
    ("post", "/api/v1/tasks/{task_id}/release"),
    ("post", "/api/v1/queues/{slug}/claim-next"),
    ("get", "/api/v1/audit"),
}


def test_every_door_is_described() -> None:
    schema = json_of(Client().get("/api/v1/openapi.json"))
    described = {(method, path) for path, methods in schema["paths"].items() for method in methods}
    assert described == DOORS


def test_the_examples_ask_with_the_token_of_somebody_who_may(cast: Cast) -> None:
    text = json_of(Client().get("/api/v1/openapi.json"))["info"]["description"].replace("\\\n", " ")
    people = dict(re.findall(r"^(\w+)=\$\(\S+ manage\.py create_token (\w+)\)", text, flags=re.MULTILINE))
    asked = re.findall(r'Bearer \$(\w+)".*?"\$api/(runs|tasks)', text)
    assert {door for _, door in asked} == {"runs", "tasks"}
    for name, door in asked:
        person = getattr(cast, people[name])
        assert permissions.can_start_runs(person) == (door == "runs")


def test_the_page_shows_every_door_and_nothing_from_outside() -> None:
    response = Client().get("/api/v1/docs")
    page = response.content.decode()
    assert response.status_code == 200
    assert all(path in page for _, path in DOORS)
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)
    assert not re.findall(r"<script(?![^>]*src=)|<style| style=| on\w+=", page)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_reads_well_in_a_browser(
    cast: Cast, page_of: Callable[..., Page], scheme: str, width: int
) -> None:
    page = page_of(None, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto("/api/v1/docs")
    page.get_by_role("link", name="Decide", exact=True).click()
    assert page.get_by_role("heading", name="Decide", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
