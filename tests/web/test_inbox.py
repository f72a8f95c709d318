"""The inbox: whose tasks it shows, in which groups, and which card lies open beside them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.test import Client
from django.utils.timezone import now

from reviewer import claims
from reviewer.models import CardOpening, ReviewTask
from tests.cast import Cast
from tests.deciding.making import pause_run, question
from tests.web.markup import Markup, read
from tests.web.stories import decide, open_task

ClientOf = Callable[..., Client]


def rows(page: Markup) -> list[str]:
    """Return the ids of the rows, top to bottom."""
    return [element.attributes["data-task"] for element in page.all("a", **{"class": "task"})]


def due_in(task: ReviewTask, minutes: int) -> ReviewTask:
    """Give a task another deadline."""
    ReviewTask.objects.filter(pk=task.pk).update(due_at=now() + dt.timedelta(minutes=minutes))
    return ReviewTask.objects.get(pk=task.pk)


def test_the_most_urgent_task_stands_first_and_lies_open(cast: Cast, client_of: ClientOf) -> None:
    later = due_in(open_task(cast, order="A-1"), 50)
    soon = due_in(open_task(cast, order="A-2"), 4)
    without = pause_run(question(), by=cast.developer, interrupt="q" * 32).tasks.get()

    page = read(client_of(cast.reviewer).get("/"))

    assert rows(page) == [str(soon.pk), str(later.pk), str(without.pk)]
    assert [element.attributes["data-card"] for element in page.all("article")] == [str(soon.pk)]
    assert "Due in 15 minutes 1" in page.text
    assert "3 waiting" in page.text


def test_what_others_hold_stands_last_with_their_name(cast: Cast, client_of: ClientOf) -> None:
    held = due_in(open_task(cast, order="A-1"), 5)
    free = due_in(open_task(cast, order="A-2"), 50)
    claims.claim(held.pk, by=cast.reviewer2)

    page = read(client_of(cast.reviewer).get("/"))

    assert rows(page) == [str(free.pk), str(held.pk)]
    assert page.all(role="img", aria_label="Claimed by Tom O.")
    assert page.values("data-card")[-1] == str(free.pk)


def test_an_outsider_sees_nothing_and_is_told_so(cast: Cast, client_of: ClientOf) -> None:
    open_task(cast)

    page = read(client_of(cast.outsider).get("/"))

    assert rows(page) == []
    assert "Nothing waits for you" in page.text


def test_a_chosen_task_lies_open_and_its_row_is_marked(cast: Cast, client_of: ClientOf) -> None:
    open_task(cast, order="A-1")
    chosen = open_task(cast, order="A-2")

    page = read(client_of(cast.reviewer).get(f"/?task={chosen.pk}"))

    assert [
        row.attributes["data-task"]
        for row in page.all("a", aria_current="true")
        if "data-task" in row.attributes
    ] == [str(chosen.pk)]
    assert page.all("article", data_card=str(chosen.pk))


def test_a_queue_a_search_and_ones_own_claims_narrow_the_list(cast: Cast, client_of: ClientOf) -> None:
    refund = open_task(cast, order="A-77")
    asked = pause_run(question("Which tax rule?"), by=cast.developer, interrupt="q" * 32).tasks.get()
    claims.claim(asked.pk, by=cast.reviewer)
    client = client_of(cast.reviewer)

    assert rows(read(client.get("/?queue=payments"))) == [str(refund.pk)]
    assert rows(read(client.get("/?q=A-77"))) == [str(refund.pk)]
    assert rows(read(client.get("/?view=claimed"))) == [str(asked.pk)]
    nothing = read(client.get("/?q=zebra"))
    assert rows(nothing) == []
    assert "Nothing waits in this view" in nothing.text


def test_decided_tasks_are_found_again_with_their_verdict(cast: Cast, client_of: ClientOf) -> None:
    task = decide(open_task(cast), cast)

    page = read(client_of(cast.reviewer).get("/?view=decided"))

    assert rows(page) == []
    assert page.all("a", href=f"/tasks/{task.pk}/")
    assert "Approved" in page.text


def test_an_empty_inbox_tells_what_was_done_today(cast: Cast, client_of: ClientOf) -> None:
    decide(open_task(cast), cast)

    page = read(client_of(cast.reviewer).get("/"))

    assert "Nothing waits for you" in page.text
    assert "1 of 1" in page.text


def test_an_open_card_is_recorded_once_as_shown(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    client = client_of(cast.reviewer)

    client.get("/")
    client.get(f"/tasks/{task.pk}/")

    opening = CardOpening.objects.get(task=task)
    assert (opening.person, opening.digest, opening.via) == (cast.reviewer, task.digest, "web")


def test_an_unknown_task_in_the_address_is_not_found(cast: Cast, client_of: ClientOf) -> None:
    assert client_of(cast.reviewer).get("/?task=not-an-id").status_code == 404
