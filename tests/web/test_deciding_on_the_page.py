"""Deciding on the page, with and without JavaScript: one address, one code path, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents_runtime.canonical import decode, digest
from reviewer import claims, decisions
from reviewer.cards import Reading
from reviewer.models import Decision, ReviewTask
from reviewer.shown import card_of
from reviewer.web import notices
from tests.cast import Cast
from tests.deciding.making import APPROVE, pause_run, question
from tests.web.markup import Markup, read
from tests.web.stories import decide, open_task

ClientOf = Callable[..., Client]
HTMX = {"hx-request": "true", "hx-current-url": "http://testserver/?task=x"}


def fields(page: Markup, **changes: str) -> dict[str, Any]:
    """Return what a browser would post from the page's decision form, with some fields filled in."""
    posted: dict[str, Any] = {}
    for element in page.elements:
        name = element.attributes.get("name", "")
        if not name or name in {"csrfmiddlewaretoken", "q", "_op"}:
            continue
        if element.tag == "input" and (
            element.attributes.get("type") not in {"radio", "checkbox"} or "checked" in element.attributes
        ):
            posted[name] = element.attributes.get("value", "")
    return posted | changes


def bare(task: ReviewTask, verdict: str, **more: str) -> dict[str, str]:
    """Return the hidden fields of a card and a verdict."""
    return {"verdict": verdict, "digest": task.digest, "claim_version": str(task.claim_version), **more}


def send(client: Client, task: ReviewTask, data: dict[str, Any], **more: Any) -> Any:
    """Post a decision."""
    return client.post(f"/tasks/{task.pk}/decide/", data, **more)


def message_name(page: Markup) -> str:
    """Return the name of the form's text field."""
    return next(
        element.attributes["name"]
        for element in page.all("textarea")
        if element.attributes["name"].startswith("v:")
    )


def test_an_approval_without_javascript_goes_on_to_the_next_card(cast: Cast, client_of: ClientOf) -> None:
    task, following = open_task(cast, order="A-1"), open_task(cast, order="A-2")

    response = send(client_of(cast.reviewer), task, bare(task, "approve", **{"from": "inbox"}))

    decision = Decision.objects.get(task=task)
    assert (decision.verdict, decision.person, decision.via) == ("approve", cast.reviewer, "web")
    assert response.status_code == 302
    assert response["Location"] == f"/?task={following.pk}&after={decision.pk}"
    after = read(client_of(cast.reviewer).get(response["Location"]))
    assert "See what came of it" in after.text


def test_a_decision_on_its_own_page_stays_there(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)

    response = send(client_of(cast.reviewer), task, bare(task, "approve"))

    assert response["Location"] == f"/tasks/{task.pk}/"


def test_a_pane_gets_the_next_card_and_the_row_that_changed(cast: Cast, client_of: ClientOf) -> None:
    task, following = open_task(cast, order="A-1"), open_task(cast, order="A-2")

    response = send(client_of(cast.reviewer), task, bare(task, "approve", **{"from": "inbox"}), headers=HTMX)

    page = read(response)
    assert response.status_code == 200
    assert b"<html" not in response.content
    assert page.all("article", data_card=str(following.pk))
    assert page.all("li", id=f"row-{task.pk}")
    assert response["HX-Replace-Url"] == f"/?task={following.pk}"


def test_the_last_decision_leaves_an_empty_inbox(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)

    page = read(
        send(client_of(cast.reviewer), task, bare(task, "approve", **{"from": "inbox"}), headers=HTMX)
    )

    assert "Nothing waits for you" in page.text


def test_an_edit_that_came_from_the_inbox_leads_back_to_it(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    headers = {"hx-request": "true", "hx-current-url": f"http://testserver/tasks/{task.pk}/?verdict=edit"}

    response = send(
        client_of(cast.reviewer), task, bare(task, "approve", **{"from": "inbox"}), headers=headers
    )

    assert response.status_code == 204
    assert response["HX-Redirect"].startswith("/?after=")


def test_a_rejection_needs_a_reason_and_keeps_the_message(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    form = read(client.get(f"/tasks/{task.pk}/?verdict=reject"))
    data = bare(task, "reject") | {message_name(form): "Not this order"}

    refused = send(client, task, data)

    assert refused.status_code == 422
    assert "Choose a reason" in read(refused).text
    assert "Not this order" in refused.content.decode()
    assert ReviewTask.objects.get(pk=task.pk).is_open

    accepted = send(client, task, data | {"reason_code": "not_proven", "comment": "Asked payments"})

    decision = Decision.objects.get(task=task)
    assert accepted.status_code == 302
    assert decode(decision.answer) == {"type": "reject", "message": "Not this order"}
    assert (decision.reason_code, decision.comment) == ("not_proven", "Asked payments")


def test_an_edit_is_sent_as_typed_values(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    data = fields(read(client.get(f"/tasks/{task.pk}/?verdict=edit")))
    amount = next(name for name, value in data.items() if value == "18.40")

    response = send(client, task, data | {amount: "9.20"})

    answer = decode(Decision.objects.get(task=task).answer)
    assert response.status_code == 302
    assert answer["type"] == "edit"
    assert answer["edited_action"]["args"] == {"order_id": "A-1001", "amount": "9.20", "reason": "duplicate"}


def test_an_edit_that_changes_nothing_is_not_an_edit(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)

    response = send(client, task, fields(read(client.get(f"/tasks/{task.pk}/?verdict=edit"))))

    assert response.status_code == 422
    assert not Decision.objects.exists()


def test_a_button_that_shapes_the_form_records_nothing(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    data = fields(read(client.get(f"/tasks/{task.pk}/?verdict=edit"))) | {"_op": "refresh"}

    response = send(client, task, data)

    assert response.status_code == 200
    assert read(response).has("data-card-diff")
    assert not Decision.objects.exists()


def test_an_edit_shows_its_own_digest_before_it_is_sent(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    data = fields(read(client.get(f"/tasks/{task.pk}/?verdict=edit")))
    amount = next(name for name, value in data.items() if value == "18.40")

    shown = read(send(client, task, data | {amount: "9.20", "_op": "refresh"}))
    send(client, task, data | {amount: "9.20"})

    sent = digest(decode(Decision.objects.get(task=task).answer))
    assert "Your version becomes" in shown.text
    assert sent in shown.values("title")


def test_a_question_is_answered_on_its_card(cast: Cast, client_of: ClientOf) -> None:
    task = pause_run(question(), by=cast.developer).tasks.get()
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/"))
    control = next(
        element.attributes["name"]
        for element in page.elements
        if element.tag in {"input", "textarea"} and element.attributes.get("name", "").startswith("v:")
    )

    response = send(client, task, fields(page) | {control: "Reverse charge"})

    assert response.status_code == 302
    assert decode(Decision.objects.get(task=task).answer) == "Reverse charge"


def test_the_second_reviewer_gets_409_and_sees_who_won_and_their_own_text(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer2)
    name = message_name(read(client.get(f"/tasks/{task.pk}/?verdict=reject")))
    decide(task, cast)

    response = send(client, task, bare(task, "reject", reason_code="other", **{name: "My own words"}))

    page = read(response)
    assert response.status_code == 409
    assert "Ines H. already decided this task: approved." in page.text
    assert "Your decision was not recorded." in page.text
    assert "My own words" in page.text
    assert Decision.objects.filter(task=task).count() == 1


def test_a_stale_digest_gets_409_and_the_form_again(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    name = message_name(read(client.get(f"/tasks/{task.pk}/?verdict=reject")))
    data = bare(task, "reject", reason_code="other", **{name: "My own words"}) | {"digest": "0" * 64}

    response = send(client, task, data)

    page = read(response)
    assert response.status_code == 409
    assert "This card has changed" in page.text
    assert page.all("input", name="digest", value=task.digest)
    assert "My own words" in response.content.decode()
    assert not Decision.objects.exists()


def test_an_approval_on_a_stale_digest_shows_the_card_as_it_is(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)

    response = send(client_of(cast.reviewer), task, bare(task, "approve") | {"digest": "0" * 64})

    assert response.status_code == 409
    assert read(response).all("input", name="verdict", value="approve")


def test_a_claim_that_ran_out_and_passed_on_gets_409(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    claims.claim(task.pk, by=cast.reviewer2)

    response = send(client_of(cast.reviewer), task, bare(task, "approve"))

    assert response.status_code == 409
    assert "Tom O. has claimed this task." in read(response).text


@pytest.mark.parametrize(("who", "code"), [("developer", 403), ("auditor", 403), ("outsider", 404)])
def test_whoever_may_not_decide_is_told_by_status(
    cast: Cast, client_of: ClientOf, who: str, code: int
) -> None:
    task = open_task(cast)

    response = send(client_of(cast.people[who]), task, bare(task, "approve"))

    assert response.status_code == code
    assert not Decision.objects.exists()


def test_a_critical_approval_is_one_post_after_its_second_step(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    ReviewTask.objects.filter(pk=task.pk).update(risk="critical")
    client = client_of(cast.reviewer)

    response = send(client, task, fields(read(client.get(f"/tasks/{task.pk}/?verdict=approve"))))

    assert response.status_code == 302
    assert Decision.objects.get(task=task).verdict == "approve"


def test_claim_and_release_answer_with_the_card(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)

    claimed = read(client.post(f"/tasks/{task.pk}/claim/", {"from": "inbox"}, headers=HTMX))
    assert claimed.all("form", action=f"/tasks/{task.pk}/release/")
    assert ReviewTask.objects.get(pk=task.pk).claimed_by == cast.reviewer

    released = client.post(f"/tasks/{task.pk}/release/")
    assert released["Location"] == f"/tasks/{task.pk}/"
    assert ReviewTask.objects.get(pk=task.pk).claimed_by is None


@pytest.mark.parametrize("verdict", ["edit", "reject", "answer"])
def test_claim_and_release_inside_a_form_answer_with_all_that_was_typed(
    cast: Cast, client_of: ClientOf, verdict: str
) -> None:
    task = open_task(cast)
    if verdict == "answer":
        task = pause_run(question(), by=cast.developer, interrupt="q" * 32).tasks.get()
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/?verdict={verdict}"))
    typed = fields(page, comment="Half a note", reason_code="wrong_scope")
    typed |= {element.attributes["name"]: "typed" for element in page.all("textarea")}
    typed |= {
        name: f"{value}, typed" for name, value in typed.items() if name.endswith(("order_id", "amount"))
    }

    for operation, holder in (("claim", cast.reviewer), ("release", None)):
        response = send(client, task, typed | {"_op": operation}, headers=HTMX)

        again = read(response)
        assert response.status_code == 200
        assert ReviewTask.objects.get(pk=task.pk).claimed_by == holder
        assert again.all("button", value="release" if holder else "claim", form=f"decide-{task.pk}")
        drawn = fields(again)
        assert typed | drawn == typed | {"claim_version": drawn["claim_version"]}
        assert again.text.split().count("typed") >= len(page.all("textarea"))
        typed |= {"claim_version": drawn["claim_version"]}
    assert not Decision.objects.exists()


def test_a_claim_inside_a_form_that_came_too_late_says_so_and_keeps_what_was_typed(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/?verdict=reject"))
    claims.claim(task.pk, by=cast.reviewer2)

    response = send(
        client, task, fields(page, **{message_name(page): "My own words", "_op": "claim"}), headers=HTMX
    )

    assert response.status_code == 409
    assert "Tom O. has claimed this task." in read(response).text
    assert "My own words" in response.content.decode()


@pytest.mark.parametrize("moved_on", ["claimed", "decided"])
@pytest.mark.parametrize("operation", ["refresh", "release", "claim", ""])
@pytest.mark.parametrize("through", [HTMX, {}], ids=["with a script", "without"])
def test_whatever_is_pressed_in_the_form_of_a_card_that_moved_on_keeps_what_was_typed(
    cast: Cast, client_of: ClientOf, moved_on: str, operation: str, through: dict[str, str]
) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)
    page = read(client.get(f"/tasks/{task.pk}/?verdict=reject"))
    if moved_on == "claimed":
        claims.claim(task.pk, by=cast.reviewer2)
    else:
        decide(task, cast)
    # Without an operation it is a rejection that lacks its reason: a form with an error, were it open still.
    data = fields(page, **{message_name(page): "My own words"}) | ({"_op": operation} if operation else {})

    response = send(client, task, data, headers=through)

    assert response.status_code == 409
    assert read(response).has("data-kept")
    assert "My own words" in response.content.decode()


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ({"type": "reject", "message": "no"}, "no"),
        ({"type": "reject", "message": "no", "severity": "high"}, '"severity": "high"'),
        ({"type": "reject", "feedback": "because"}, '"feedback": "because"'),
        ({"message": "hello", "ok": True}, '"ok": true'),
        ("A plain text", "A plain text"),
        ({"type": "approve"}, ""),
    ],
)
def test_all_that_was_written_is_kept_whatever_the_answer_looks_like(
    cast: Cast, answer: Any, kept: str
) -> None:
    card = card_of(open_task(cast))
    form = card.open("reject")

    text = notices.kept_text(card, Reading(form.verdict, form, answer), "")

    assert kept in text
    assert bool(text) == bool(kept)


def test_enter_in_a_field_presses_a_button_that_only_draws_the_form_again(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_task(cast)
    ReviewTask.objects.filter(pk=task.pk).update(risk="critical")
    held = open_task(cast, order="A-2")
    claims.claim(held.pk, by=cast.reviewer)
    client = client_of(cast.reviewer)

    for one in (task, held):
        for verdict in ("approve", "edit", "reject"):
            page = read(client.get(f"/tasks/{one.pk}/?verdict={verdict}"))
            buttons = [
                element.attributes
                for element in page.all("button", type="submit")
                if element.attributes.get("form", "").startswith("decide-")
            ]
            if not page.all("form", id=f"decide-{one.pk}"):
                continue
            assert (buttons[0]["name"], buttons[0]["value"]) == ("_op", "refresh")


def test_a_claim_that_came_too_late_shows_who_was_faster(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    claims.claim(task.pk, by=cast.reviewer2)

    response = client_of(cast.reviewer).post(f"/tasks/{task.pk}/claim/")

    assert response.status_code == 409
    assert "Tom O. has claimed this task." in read(response).text


def test_web_and_api_decide_through_one_verb(cast: Cast, client_of: ClientOf) -> None:
    by_hand, by_page = open_task(cast, order="A-1"), open_task(cast, order="A-2")
    decisions.decide(by_hand.pk, by=cast.reviewer, answer=APPROVE, digest=by_hand.digest, via="api")
    send(client_of(cast.reviewer), by_page, bare(by_page, "approve"))

    answers = set(Decision.objects.values_list("answer", flat=True))

    assert answers == {'{"type":"approve"}'}
