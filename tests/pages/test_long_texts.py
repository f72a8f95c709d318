"""What a run was told and has come to may be long: nothing reads it that only shows cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from reviewer.accounts.models import User
from reviewer.decisions import decide
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund
from tests.doors import ApiClient

LONG = [f'"agents_runtime_run"."{name}"' for name in ("state", "input", "output", "pending_input")]


@contextmanager
def reads_no_long_text() -> Iterator[None]:
    """Find that no statement within asks for a long column."""
    asked: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        asked.append(sql.partition(" FROM ")[0])
        return execute(sql, *arguments)

    with connection.execute_wrapper(note):
        yield
    assert asked
    assert [column for column in LONG if column in " ".join(asked)] == []


@pytest.mark.parametrize("address", ["/", "/tasks/{task}", "/tasks/{task}?full=1"])
def test_pages_of_cards_read_no_long_texts_of_their_runs(
    address: str, cast: Cast, client_of: Callable[[User], Client]
) -> None:
    task, client = open_refund(by=cast.developer), client_of(cast.reviewer)
    with reads_no_long_text():
        assert client.get(address.format(task=task.pk), follow=True).status_code == 200


def test_programs_that_list_and_open_cards_read_none_either(
    cast: Cast, api_client: Callable[[User], ApiClient]
) -> None:
    task, program = open_refund(by=cast.developer), api_client(cast.reviewer)
    with reads_no_long_text():
        assert program.get("tasks").status_code == 200
        assert program.get(f"tasks/{task.pk}").status_code == 200


def test_a_decision_reads_none_either(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    with reads_no_long_text():
        decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
