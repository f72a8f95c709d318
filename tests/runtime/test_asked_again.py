"""Questions that come again: the card shows the last answer and why it did not do, however it was refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from django.test import Client

from agents_runtime.canonical import Json, decode
from reviewer.accounts.models import User
from reviewer.models import ReviewTask
from tests.cards.browser import Page
from tests.cast import Cast
from tests.runtime.driving import advance, call, edit, script, start
from tests.runtime.reviewing import Reviewer


def text_of(html: str) -> str:
    """Return what can be read on the page's main part."""
    return " ".join(" ".join(part for part in Page(_main(html)).text if part.strip()).split())


def _main(html: str) -> str:
    return html[html.index("<main") : html.index("</main>") + len("</main>")]


def form_of(html: str) -> Page:
    """Return the form of a card."""
    found = re.search(r'<form[^>]*id="decide-[^"]*".*?</form>', html, re.S)
    assert found is not None
    return Page(found[0])


def send(ines: Reviewer, task: ReviewTask, **typed: str) -> Any:
    """Fill in the form that lies open on a card and send it, as a browser would."""
    fields = form_of(ines.page(task)).post_with(None, typed)
    return ines.browser.post(f"/tasks/{task.pk}/decide/", fields)


def test_a_question_that_a_node_asks_again_shows_what_it_got_before(ines: Reviewer) -> None:
    run = start("t-stubborn", {"ask": "x"})
    first = ines.card(run)
    assert "Asked before" not in ines.page(first)
    run = ines.decide(first, "many")
    again = ines.card(run)
    text = text_of(ines.page(again))
    assert "'many' is no number. How many?" in text
    assert "Asked before in this step" in text
    assert "How many? , by you" in text
    assert "Value many string" in text
    assert f'href="/tasks/{first.pk}/"' in ines.page(again)
    run = ines.decide(again, 12)
    assert run.status == "finished", run.error


def test_the_reason_an_agent_gives_apart_stands_out_as_the_agents_words(ines: Reviewer) -> None:
    run = start("t-asker-again", {"ask": "x"})
    assert "Why, in the agent’s words" not in ines.page(ines.card(run))
    run = ines.decide(ines.card(run), {"age": -1})
    page = ines.page(ines.card(run))
    text = text_of(page)
    assert (
        text.index("Asked before")
        < text.index("Why, in the agent’s words")
        < text.index("What the agent asks")
    )
    assert "<strong>age</strong> must be 0 or more" in page
    assert "age -1 integer" in text
    run = ines.decide(ines.card(run), {"age": 7})
    assert decode(run.output)["answers"] == [{"age": 7}]


def test_what_was_asked_in_another_node_is_not_what_was_asked_before(ines: Reviewer) -> None:
    run = ines.answer(start("t-house", {"ask": "x"}), "one")
    assert "Asked before" in ines.page(ines.card(run))  # the same node of the subgraph
    run = ines.answer(run, "two")
    assert "Asked before" not in ines.page(ines.card(run))


def test_a_refused_answer_lies_in_the_form_with_the_objection_at_its_field(ines: Reviewer) -> None:
    run = start("t-picky", {"ask": "x"})
    first = ines.card(run)
    assert send(ines, first, **{"v:/number": "3"}).status_code == 302
    run = advance(run)
    again = ines.card(run)
    assert again.previous_id == first.pk
    html = ines.page(again)
    form = form_of(html)
    field = next(control for control in form.controls if control.name == "v:/number")
    assert field.value == "3"
    assert field.attrs["aria-invalid"] == "true"
    assert (field.attrs["aria-describedby"] or "").split()[-1] in form.ids
    assert "receipts have even numbers" in text_of(html)
    assert "The answer that was refused" in text_of(html)
    assert f'href="/tasks/{again.pk}/"' in ines.page(first)
    assert send(ines, again, **{"v:/number": "4"}).status_code == 302
    run = advance(run)
    assert decode(run.output)["answers"] == [4]


def test_a_refused_edit_starts_from_the_edit_with_each_objection_at_its_argument(ines: Reviewer) -> None:
    run = start("t-exacting", script([call("transfer", to="a", amount="1.00", days=[1])]))
    first = ines.card(run)
    wrong = edit("transfer", to="b", amount="1.23456", days=[1, 2])
    run = ines.decide(first, wrong)
    assert run.status == "waiting", run.error
    again = ines.card(run)
    assert again.previous_id == first.pk
    assert "The form starts from that answer" in text_of(ines.page(again))
    html = ines.browser.get(f"/tasks/{again.pk}/?verdict=edit").content.decode()
    form = form_of(html)
    fields = {control.name: control for control in form.controls}
    amount = fields["v:/edited_action/args/amount/~1"]
    assert (amount.value, amount.attrs.get("aria-invalid")) == ("1.23456", "true")
    assert fields["v:/edited_action/args/to"].value == "b"
    assert "Approve with 3 changes" in html
    assert "decimal places" in text_of(html)
    posted = form.post_with(None, {"v:/edited_action/args/amount/~1": "1.25"})
    assert ines.browser.post(f"/tasks/{again.pk}/decide/", posted).status_code == 302
    run = advance(run)
    assert run.status == "finished", run.error


def test_who_may_not_see_the_earlier_card_is_not_shown_its_answer(
    ines: Reviewer, cast: Cast, client_of: Callable[[User], Client]
) -> None:
    run = start("t-stubborn", {"ask": "x"})
    first = ines.card(run)
    run = ines.decide(first, "many")
    again = ines.card(run)
    ReviewTask.objects.filter(pk=first.pk).update(queue=cast.payments)
    ReviewTask.objects.filter(pk=again.pk).update(queue=cast.mail)
    assert "Asked before" in ines.page(again)
    cast.reviewer2.memberships.filter(queue=cast.payments).delete()
    page = client_of(cast.reviewer2).get(f"/tasks/{again.pk}/").content.decode()
    assert "Asked before" not in page


def as_asked(value: Json) -> Json:
    """Return the input that makes the parrot ask this."""
    return {"ask": json.dumps(value)}


def test_a_plain_question_is_answered_in_words_without_quotes(ines: Reviewer) -> None:
    run = start("t-parrot", as_asked("Which tax rule?"))
    task = ines.card(run)
    assert send(ines, task, **{"v:/~0": " "}).status_code == 422
    assert send(ines, task, **{"v:/~0": "Rule 12"}).status_code == 302
    assert decode(advance(run).output)["answers"] == ["Rule 12"]


def test_a_legacy_request_is_edited_in_a_form_and_answered_in_its_own_shape(ines: Reviewer) -> None:
    flags = {"allow_accept": True, "allow_edit": True, "allow_respond": False, "allow_ignore": True}
    request = {
        "action_request": {"action": "Send mail", "args": {"to": "ann@example.org", "cc": ["a", "b"]}},
        "config": flags,
        "description": "# A mail\n\nIt is **urgent**.",
    }
    run = start("t-parrot", as_asked([request]))
    task = ines.card(run)
    page = ines.page(task)
    assert "<strong>urgent</strong>" in page
    assert "respond" not in {name.lower() for name in re.findall(r"verdict=(\w+)", page)}
    html = ines.browser.get(f"/tasks/{task.pk}/?verdict=edit").content.decode()
    posted = form_of(html).post_with(
        None, {"v:/edited_action/args": '{"to": "bo@example.org", "cc": ["a", "b"]}'}
    )
    assert ines.browser.post(f"/tasks/{task.pk}/decide/", posted).status_code == 302
    (answers,) = decode(advance(run).output)["answers"]
    args = {"to": "bo@example.org", "cc": ["a", "b"]}
    assert answers == [{"type": "edit", "args": {"action": "Send mail", "args": args}}]
