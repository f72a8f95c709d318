"""What programs ask passes by what only pages need, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from django.utils import translation

from tests.cast import Cast
from tests.doors import ApiClient

Programs = Callable[..., ApiClient]


def test_a_program_gets_no_cookie_and_nothing_that_a_browser_would_show(
    cast: Cast, api_client: Programs
) -> None:
    response = api_client(cast.reviewer).get("tasks")
    assert response["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Length"] == str(len(response.content))
    assert not response.cookies
    assert "Vary" not in response


def test_the_page_about_the_api_is_a_page(client_of: Callable[..., Client], cast: Cast) -> None:
    response = client_of(cast.developer).get("/api/v1/docs")
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY"


def test_the_door_itself_is_a_page_that_nobody_may_frame(database: None) -> None:
    response = Client().get("/api/v1/")
    assert response.status_code == 404
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY"


def test_a_host_that_is_not_ours_is_refused_to_programs_too(database: None) -> None:
    assert (
        Client(raise_request_exception=False)
        .get("/api/v1/tasks", headers={"host": "evil.example"})
        .status_code
        == 400
    )


def test_an_address_that_no_pattern_knows_is_nobodys(database: None) -> None:
    assert Client().get("/api/v1/a%0Ab").status_code == 404


def test_a_program_is_answered_in_the_language_of_the_settings(cast: Cast, api_client: Programs) -> None:
    with translation.override("de"):  # somebody's page, in the same thread
        api_client(cast.reviewer).get("tasks")
        assert translation.get_language() == "en"
