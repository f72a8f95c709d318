"""The shell around every page: sign in, the rail by role, no inline anything, errors with one way on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from reviewer.models import ReviewTask
from tests.cast import PASSWORD, Cast
from tests.web.markup import read
from tests.web.stories import open_task

ClientOf = Callable[..., Client]


@pytest.mark.django_db
def test_a_signed_out_person_is_sent_to_sign_in_and_back() -> None:
    response = Client().get("/?queue=payments")

    assert response.status_code == 302
    assert response["Location"] == "/accounts/login/?next=/%3Fqueue%3Dpayments"


def test_the_right_password_opens_the_inbox(cast: Cast) -> None:
    response = Client().post("/accounts/login/", {"username": "reviewer", "password": PASSWORD})

    assert response.status_code == 302
    assert response["Location"] == "/"


def test_a_wrong_password_is_told_at_its_field_and_keeps_the_name(cast: Cast) -> None:
    page = read(Client().post("/accounts/login/", {"username": "reviewer", "password": "wrong"}))

    assert "Account name and password do not match" in page.text
    assert page.all("input", name="username", value="reviewer")
    assert page.all("input", name="password", aria_describedby="sign-in-error")
    assert not page.all("input", name="password", value="wrong")


def test_the_sign_in_page_allows_password_managers(cast: Cast) -> None:
    page = read(Client().get("/accounts/login/"))

    assert page.all("input", name="username", autocomplete="username")
    assert page.all("input", name="password", autocomplete="current-password")


@pytest.mark.parametrize(
    ("path", "wants_task"),
    [
        ("/accounts/login/", False),
        ("/", False),
        ("/", True),
        ("/?view=claimed", True),
        ("/?view=decided", True),
        ("/?queue=payments", True),
        ("/?q=nothing-like-it", True),
        ("/tasks/{task}/", True),
        ("/tasks/{task}/?verdict=edit", True),
        ("/tasks/{task}/?verdict=reject", True),
        ("/nothing-here/", False),
    ],
)
def test_no_page_has_inline_style_script_or_handlers(
    cast: Cast, client_of: ClientOf, path: str, wants_task: bool
) -> None:
    task = open_task(cast, said="<script>alert(1)</script><b onclick=x>") if wants_task else None
    client = Client() if "login" in path else client_of(cast.reviewer)

    page = read(client.get(path.format(task=task.pk if task else "")))

    assert page.inline == []
    assert len(page.all("h1")) == 1
    assert page.all("main", id="main")
    ids = page.values("id")
    assert sorted(set(ids)) == sorted(ids)


def test_every_page_forbids_whatever_is_not_ours(cast: Cast, client_of: ClientOf) -> None:
    policy = client_of(cast.reviewer).get("/")["Content-Security-Policy"]

    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'"):
        assert part in policy
    assert "unsafe" not in policy


def test_a_page_begins_with_the_way_past_the_rail(cast: Cast, client_of: ClientOf) -> None:
    page = read(client_of(cast.reviewer).get("/"))

    assert page.all("a")[0].attributes["href"] == "#main"


@pytest.mark.parametrize(
    ("who", "sees"), [("auditor", True), ("admin", True), ("reviewer", False), ("lead", False)]
)
def test_only_admins_and_auditors_find_the_trail_in_the_rail(
    cast: Cast, client_of: ClientOf, who: str, sees: bool
) -> None:
    page = read(client_of(cast.people[who]).get("/"))

    assert ("/audit/" in page.values("href")) is sees


def test_the_rail_counts_what_waits_and_marks_where_one_is(cast: Cast, client_of: ClientOf) -> None:
    open_task(cast)

    page = read(client_of(cast.reviewer).get("/?queue=payments"))

    here = page.all("a", aria_current="page")
    assert [element.attributes["href"] for element in here] == ["/?queue=payments"]
    assert "Payments 1" in page.text


def test_a_task_of_a_foreign_queue_looks_like_none(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    outsider = client_of(cast.outsider)

    for path in (f"/tasks/{task.pk}/", f"/tasks/{task.pk}/pane/", f"/?task={task.pk}"):
        response = outsider.get(path)
        assert response.status_code == 404
        assert "Nothing here for you" in read(response).text
    for verb in ("decide", "claim", "release"):
        assert outsider.post(f"/tasks/{task.pk}/{verb}/").status_code == 404


def test_a_problem_in_a_pane_is_a_fragment_with_a_way_on(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)

    response = client_of(cast.outsider).get(f"/tasks/{task.pk}/pane/", headers={"hx-request": "true"})

    assert response.status_code == 404
    assert b"<html" not in response.content
    assert read(response).all("a", href="/")


def test_a_form_without_its_token_is_refused_in_words(cast: Cast) -> None:
    task = open_task(cast)
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.reviewer, backend="django.contrib.auth.backends.ModelBackend")

    response = client.post(f"/tasks/{task.pk}/decide/", {"verdict": "approve", "digest": task.digest})

    assert response.status_code == 403
    assert "This form is too old" in read(response).text
    assert ReviewTask.objects.get(pk=task.pk).is_open


def test_signing_out_takes_a_post(cast: Cast, client_of: ClientOf) -> None:
    client = client_of(cast.reviewer)

    assert client.get("/accounts/logout/").status_code == 405
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/").status_code == 302
