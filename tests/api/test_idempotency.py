"""One Idempotency-Key does once: again is the same answer, another body is refused, two at once are one."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models import F

from reviewer.api import idempotency
from reviewer.models import AuditEvent, Decision, IdempotentReply, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, open_refund
from tests.doors import ApiClient, json_of
from tests.servers import servers

Programs = Callable[..., ApiClient]


@pytest.fixture
def task(cast: Cast) -> ReviewTask:
    return open_refund(by=cast.developer)


def address(task: ReviewTask) -> str:
    return f"tasks/{task.pk}/decision"


def body(task: ReviewTask, answer: Any = None) -> dict[str, Any]:
    return {"answer": answer or APPROVE, "digest": task.digest}


def test_the_same_request_again_gets_the_same_answer(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    program = api_client(cast.reviewer)
    first = program.post(address(task), body(task), key="k-1")
    again = program.post(address(task), body(task), key="k-1")
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert Decision.objects.count() == 1


def test_a_keyed_answer_looks_like_any_other(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    program = api_client(cast.reviewer)
    with_key = json_of(program.post(f"tasks/{task.pk}/claim", key="k"))
    without = json_of(program.post(f"tasks/{task.pk}/claim"))
    for moving in ("claimed_until", "version"):
        with_key.pop(moving)
        without.pop(moving)
    assert with_key == without


def test_the_order_of_keys_and_blanks_does_not_make_another_body(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    program = api_client(cast.reviewer)
    program.post(address(task), body(task), key="k")
    turned = f'{{ "digest":"{task.digest}",  "answer":{{"type":"approve"}} }}'.encode()
    assert program.post(address(task), raw=turned, key="k").status_code == 200


def test_another_body_under_the_same_key_is_refused(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    program = api_client(cast.reviewer)
    program.post(address(task), body(task), key="k")
    response = program.post(address(task), body(task, REJECT), key="k")
    assert (response.status_code, json_of(response)["error"]) == (422, "idempotency_key_reused")


def test_a_key_belongs_to_one_person_and_one_route(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    other = open_refund(by=cast.developer)
    api_client(cast.reviewer).post(address(task), body(task), key="k")
    assert api_client(cast.reviewer).post(address(other), body(other, REJECT), key="k").status_code == 200
    assert api_client(cast.reviewer2).post(address(task), body(task), key="k").status_code == 409


def test_a_failed_request_keeps_nothing_and_its_refusal_stays_in_the_trail(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    program = api_client(cast.reviewer)
    stale = {"answer": APPROVE, "digest": "0" * 64}
    assert program.post(address(task), stale, key="k").status_code == 409
    assert AuditEvent.objects.filter(type="decision.refused", outcome="stale").count() == 1
    assert not IdempotentReply.objects.exists()
    assert program.post(address(task), body(task), key="k").status_code == 200


def test_an_answer_is_kept_for_a_day(cast: Cast, api_client: Programs, task: ReviewTask) -> None:
    program = api_client(cast.reviewer)
    program.post(address(task), body(task), key="k")
    IdempotentReply.objects.update(created_at=F("created_at") - dt.timedelta(hours=23, minutes=59))
    assert program.post(address(task), body(task), key="k").status_code == 200
    IdempotentReply.objects.update(created_at=F("created_at") - dt.timedelta(minutes=2))
    assert program.post(address(task), body(task), key="k").status_code == 409


@pytest.mark.parametrize("key", ["k" * 201, "nul\x01", "é"])
def test_a_key_that_is_none_is_refused(cast: Cast, api_client: Programs, task: ReviewTask, key: str) -> None:
    response = api_client(cast.reviewer).post(address(task), body(task), key=key)
    assert response.status_code == 422


def test_of_many_requests_at_once_with_one_key_one_works_and_all_get_its_answer(
    committed_db: None, cast: Cast, api_client: Programs
) -> None:
    task = open_refund(by=cast.developer)
    program = api_client(cast.reviewer)

    def ask(_: int) -> tuple[int, bytes]:
        try:
            response = program.post(address(task), body(task), key="at-once")
            return response.status_code, response.content
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        answers = set(pool.map(ask, range(6)))
    assert len(answers) == 1
    assert answers.pop()[0] == 200
    assert Decision.objects.count() == 1
    assert AuditEvent.objects.filter(type="decision.refused").count() == 0


def test_of_many_requests_at_once_without_a_key_one_wins_and_the_others_hear_who(
    committed_db: None, cast: Cast, api_client: Programs
) -> None:
    task = open_refund(by=cast.developer)
    programs = [api_client(person) for person in (cast.reviewer, cast.reviewer2, cast.lead)]

    def ask(program: ApiClient) -> tuple[int, str | None]:
        try:
            response = program.post(address(task), body(task))
            return response.status_code, json_of(response).get("who")
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(ask, programs))
    assert sorted(status for status, _ in answers) == [200, 409, 409]
    winner = Decision.objects.get().person_name
    assert {who for status, who in answers if status == 409} == {winner}


def test_a_request_whose_twin_takes_too_long_is_told_to_come_again(
    committed_db: None, cast: Cast, api_client: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "PATIENCE", "200ms")
    task = open_refund(by=cast.developer)
    program = api_client(cast.reviewer)

    def ask() -> Any:
        try:
            return program.post(address(task), body(task), key="slow")
        finally:
            connection.close()

    with psycopg.connect(servers().app_url) as somebody, ThreadPoolExecutor(1) as pool:
        somebody.execute("SELECT FROM agents_runtime_run FOR UPDATE")
        first = pool.submit(ask)
        while not _is_somebody_waiting():
            time.sleep(0.02)
        second = ask()
        somebody.rollback()
        assert (second.status_code, json_of(second)["error"]) == (409, "in_progress")
        assert first.result().status_code == 200
    assert ask()["Idempotent-Replayed"] == "true"


def _is_somebody_waiting() -> bool:
    with psycopg.connect(servers().superuser_url) as link:
        row = link.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row is not None and row[0] > 0


def test_a_reply_that_an_earlier_build_kept_is_given_again_as_it_was(
    cast: Cast, api_client: Callable[..., ApiClient]
) -> None:
    task, program = open_refund(by=cast.developer), api_client(cast.reviewer)
    program.post(address(task), body(task), key="old")
    kept = IdempotentReply.objects.get(key="old")
    kept.body = '{"verdict": "approve"}'
    kept.save()
    found = program.post(f"{address(task)}?wait=5", body(task), key="old")
    assert (found.status_code, json_of(found)) == (200, {"verdict": "approve"})
