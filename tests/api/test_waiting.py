"""Waiting through the API: told at once, by a hint, without one, and never more than one may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest
from channels.layers import get_channel_layer
from django.db import transaction

from agents_runtime import thread_lock
from agents_runtime.canonical import encode
from agents_runtime.models import AgentSpec, Run
from agents_runtime.states import RunStatus
from reviewer import live, queries, steering
from reviewer.accounts.models import ApiToken, User
from reviewer.api import waiting
from reviewer.api.waiting import Waits
from reviewer.models import QueueMembership
from reviewer.web.handler import OneHopHandler
from tests.cast import Cast, token_of
from tests.deciding.making import open_refund
from tests.doors import ApiClient, json_of
from tests.web.asgi import Asked, ask, scope_of
from tests.web.stories import decide

T = TypeVar("T")
Tokens = dict[User, str]
NEVER = 60.0  # seconds: longer than any test
SOON = 30.0  # seconds, on a machine that does much else

pytestmark = pytest.mark.usefixtures("committed_db")


class Door:
    """The API as a server has it, and clients that wait at it."""

    def __init__(self) -> None:
        self.handler = OneHopHandler()
        self.waits = Waits(self.handler, in_thread=self.handler.in_thread)

    async def ask(self, path: str, token: str) -> Asked:
        """Return the answer."""
        return await asyncio.wait_for(ask(self.waits, f"/api/v1/{path}", token=token), SOON)

    async def wait_at(self, path: str, token: str) -> tuple[Asked, asyncio.Task[None]]:
        """Ask, and return once it is clear that the answer is held back."""
        asked, before = Asked(), self.waits._waiting
        scope = scope_of(f"/api/v1/{path}", token=token)
        task = asyncio.create_task(self.waits(scope, asked.receive, asked.send))
        await self.until(lambda: self.waits._waiting > before and bool(self.waits._hints._listeners))
        await asyncio.sleep(0.2)  # the check after it began to listen
        assert not task.done()
        return asked, task

    async def until(self, so: Callable[[], bool]) -> None:
        """Return once it is so."""
        async with asyncio.timeout(SOON):
            while not so():  # noqa: ASYNC110  no event tells what the door has inside
                await asyncio.sleep(0.01)

    async def do(self, work: Callable[[], T]) -> T:
        """Do it in a thread, with what it sends after its commit."""
        return await self.handler.in_thread(work)


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def tokens(cast: Cast) -> Tokens:
    """A token of each person."""
    return {person: token_of(person) for person in (cast.developer, cast.reviewer, cast.outsider)}


@pytest.fixture
def run(cast: Cast) -> Iterator[Run]:
    """A run that no worker can take: the lock on its thread is held before anybody hears of it."""
    spec = AgentSpec.objects.create(name="idler", source="tests", entry="idler", input_schema=encode({}))
    with ExitStack() as held:
        with transaction.atomic():
            run = steering.start_run(spec.name, input={}, by=cast.developer)
            held.enter_context(thread_lock.hold(run.pk))
        yield run


@pytest.fixture
def hints_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look without a hint."""
    monkeypatch.setattr(waiting, "LOOK_AGAIN_FIRST", NEVER)
    monkeypatch.setattr(waiting, "LOOK_AGAIN", NEVER)


@pytest.fixture
def looks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints get lost."""
    monkeypatch.setattr(live, "_send", lambda *_: None)
    monkeypatch.setattr(waiting, "LOOK_AGAIN_FIRST", 0.1)
    monkeypatch.setattr(waiting, "LOOK_AGAIN", 0.1)


@pytest.mark.usefixtures("hints_only")
async def test_the_end_of_a_run_is_told_as_soon_as_it_comes(
    cast: Cast, door: Door, tokens: Tokens, run: Run
) -> None:
    asked, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    await door.do(lambda: steering.cancel(run.pk, by=cast.developer))
    await asyncio.wait_for(task, SOON)
    assert (asked.status, asked.json["status"]) == (200, "cancelled")


@pytest.mark.usefixtures("hints_only")
async def test_a_task_is_told_to_all_as_soon_as_it_comes(cast: Cast, door: Door, tokens: Tokens) -> None:
    waits = [await door.wait_at("tasks?status=open&wait=30", tokens[cast.reviewer]) for _ in range(3)]
    task = await door.do(lambda: open_refund(by=cast.developer))
    for asked, waiter in waits:
        await asyncio.wait_for(waiter, SOON)
        assert [row["id"] for row in asked.json["items"]] == [str(task.pk)]


@pytest.mark.usefixtures("looks_only")
async def test_a_hint_that_gets_lost_only_delays(cast: Cast, door: Door, tokens: Tokens, run: Run) -> None:
    asked, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    await door.do(lambda: steering.cancel(run.pk, by=cast.developer))
    await asyncio.wait_for(task, SOON)
    assert asked.json["status"] == "cancelled"


@pytest.mark.usefixtures("looks_only")
async def test_without_redis_a_wait_still_ends(
    cast: Cast, door: Door, tokens: Tokens, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(_: Any) -> AsyncIterator[list[str]]:
        await asyncio.sleep(NEVER)
        yield []

    monkeypatch.setattr(type(get_channel_layer()), "hear", hangs)
    asked, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    await door.do(lambda: steering.cancel(run.pk, by=cast.developer))
    await asyncio.wait_for(task, SOON)
    assert asked.json["status"] == "cancelled"


@pytest.mark.parametrize("path", ["runs/{run}?wait=0.4", "tasks?run={run}&wait=0.4"])
async def test_after_the_time_asked_for_the_answer_is_what_is_there(
    cast: Cast, door: Door, tokens: Tokens, run: Run, path: str
) -> None:
    begin = asyncio.get_running_loop().time()
    found = await door.ask(path.format(run=run.pk), tokens[cast.developer])
    assert asyncio.get_running_loop().time() - begin >= 0.4
    assert found.status == 200
    assert found.json.get("items", []) == []
    assert found.json.get("status", "queued") == "queued"


async def test_what_is_there_is_answered_at_once(
    cast: Cast, door: Door, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door.waits, "_until_it_has_come", None)  # nobody waits
    task = await door.do(lambda: open_refund(by=cast.developer))
    for person, path in ((cast.developer, f"runs/{task.run_id}?wait=30"), (cast.reviewer, "tasks?wait=30")):
        assert (await door.ask(path, tokens[person])).status == 200


@pytest.mark.usefixtures("looks_only")
async def test_a_token_that_is_revoked_meanwhile_opens_nothing(
    cast: Cast, door: Door, tokens: Tokens, run: Run
) -> None:
    asked, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    await door.do(lambda: ApiToken.objects.all().delete())
    await asyncio.wait_for(task, SOON)
    assert (asked.status, asked.json["error"]) == (401, "unauthorized")


@pytest.mark.usefixtures("hints_only")
async def test_rights_that_are_lost_meanwhile_count(cast: Cast, door: Door, tokens: Tokens) -> None:
    asked, waiter = await door.wait_at("tasks?status=decided&wait=2", tokens[cast.reviewer])
    await door.do(lambda: QueueMembership.objects.filter(user=cast.reviewer).delete())
    await door.do(lambda: open_refund(by=cast.developer))
    await asyncio.wait_for(waiter, SOON)
    assert asked.json["items"] == []


async def test_a_run_that_one_may_not_see_is_not_waited_for(
    cast: Cast, door: Door, tokens: Tokens, run: Run
) -> None:
    assert (await door.ask(f"runs/{run.pk}?wait=30", tokens[cast.outsider])).status == 404
    assert (await door.ask(f"runs/{run.pk}?wait=30", "no-token")).status == 401


async def test_the_wait_ends_with_its_client(cast: Cast, door: Door, tokens: Tokens, run: Run) -> None:
    asked, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    asked.gone.set()
    await asyncio.wait_for(task, SOON)
    assert (asked.status, door.waits._waiting, door.waits._hints._listeners) == (0, 0, set())


async def test_who_comes_when_too_many_wait_is_answered_at_once(
    cast: Cast, door: Door, tokens: Tokens, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST", 1)
    _, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    assert (await door.ask(f"runs/{run.pk}?wait=30", tokens[cast.developer])).json["status"] == "queued"
    task.cancel()


async def test_waits_hold_no_thread(cast: Cast, door: Door, tokens: Tokens, run: Run) -> None:
    token = tokens[cast.developer]
    waits = [await door.wait_at(f"runs/{run.pk}?wait=30", token) for _ in range(25)]
    assert (await door.ask("tasks", token)).status == 200
    for asked, _ in waits:
        asked.gone.set()
    await asyncio.wait_for(asyncio.gather(*(task for _, task in waits)), SOON)


@pytest.mark.parametrize("seconds", ["31", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize("path", ["runs/{run}?wait=", "tasks?wait="])
async def test_a_wait_that_is_none_is_refused(
    cast: Cast, door: Door, tokens: Tokens, run: Run, path: str, seconds: str
) -> None:
    found = await door.ask(path.format(run=run.pk) + seconds, tokens[cast.developer])
    assert (found.status, found.json["problems"][0]["pointer"]) == (422, "/wait")


def test_where_nobody_can_wait_the_answer_is_what_is_there(
    cast: Cast, run: Run, api_client: Callable[..., ApiClient]
) -> None:
    assert json_of(api_client(cast.developer).get(f"runs/{run.pk}", wait=30))["status"] == "queued"


def test_a_run_is_at_work_while_its_answer_is_on_its_way(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    run = Run.objects.get(pk=task.run_id)
    assert run.status == RunStatus.WAITING
    assert not queries.is_at_work(run)
    assert not queries.is_still_at_work(run.pk)
    decide(task, cast)
    assert queries.is_at_work(run)
    assert queries.is_still_at_work(run.pk)
