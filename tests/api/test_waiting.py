"""Waiting through the API: told at once, by a hint, without one, and never more than one may see.

What a POST does is done once and before it waits, whatever becomes of the hints, the checks and the client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

import psycopg
import pytest
from channels.layers import get_channel_layer
from django.db import transaction

from agents_runtime import runs, thread_lock
from agents_runtime.canonical import encode
from agents_runtime.direct import conninfo
from agents_runtime.models import AgentSpec, Run
from agents_runtime.states import PauseStatus, RunStatus
from reviewer import live, queries, steering
from reviewer.accounts.models import ApiToken, User
from reviewer.api import waiting
from reviewer.api.waiting import Waits, _Hints, _Listener
from reviewer.intake import Desk
from reviewer.models import AuditEvent, Decision, QueueMembership, ReviewTask
from reviewer.web.handler import OneHopHandler
from tests.cast import Cast, token_of
from tests.deciding.making import APPROVE, open_refund, pause_run, refund
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

    async def post(self, path: str, token: str, body: Any, *, key: str = "") -> Asked:
        """Return the answer to a POST."""
        asked, task = self._begin(path, token, body, key=key)
        await asyncio.wait_for(task, SOON)
        return asked

    async def wait_at(
        self, path: str, token: str, body: Any = None, *, key: str = ""
    ) -> tuple[Asked, asyncio.Task[None]]:
        """Ask, with a body by POST, and return once it is clear that the answer is held back."""
        before = len(self._held)
        asked, task = self._begin(path, token, body, key=key)
        await self.until(lambda: len(self._held) > before)
        await asyncio.sleep(0.2)  # the check where it may have been deaf
        assert not task.done()
        return asked, task

    @property
    def _held(self) -> list[_Listener]:
        """The waits that know what they wait for."""
        return [one for one in self.waits._hints._listeners if one.names is not None]

    def _begin(self, path: str, token: str, body: Any, *, key: str) -> tuple[Asked, asyncio.Task[None]]:
        asked = Asked(sent=b"" if body is None else json.dumps(body).encode())
        method = "GET" if body is None else "POST"
        scope = scope_of(f"/api/v1/{path}", token=token, method=method, key=key)
        return asked, asyncio.create_task(self.waits(scope, asked.receive, asked.send))

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
def idler(cast: Cast) -> AgentSpec:
    """An agent that there is no code of."""
    return AgentSpec.objects.create(name="idler", source="tests", entry="idler", input_schema=encode({}))


@pytest.fixture
def run(cast: Cast, idler: AgentSpec) -> Iterator[Run]:
    """A run that no worker can take: the lock on its thread is held before anybody hears of it."""
    with ExitStack() as held:
        with transaction.atomic():
            run = steering.start_run(idler.name, input={}, by=cast.developer)
            held.enter_context(thread_lock.hold(run.pk))
        yield run


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No worker can take a run that is started: its lock is held before anybody hears of it."""
    start = runs.start
    with psycopg.connect(conninfo(application="tests"), autocommit=True) as holder:

        def start_and_hold(*args: Any, **kwargs: Any) -> Run:
            run = start(*args, **kwargs)
            holder.execute("SELECT pg_advisory_lock(%s)", [thread_lock.lock_key(run.pk)])
            return run

        monkeypatch.setattr(runs, "start", start_and_hold)
        yield


@pytest.fixture
def task(cast: Cast) -> Iterator[ReviewTask]:
    """A card whose run no worker can take, so that only the test delivers what is decided."""
    task = open_refund(by=cast.developer)
    with thread_lock.hold(task.run_id):
        yield task


def decision_on(task: ReviewTask) -> dict[str, Any]:
    """Return the body that approves it."""
    return {"answer": APPROVE, "digest": task.digest}


@transaction.atomic
def deliver(task: ReviewTask) -> None:
    """Let the decision take effect, as a worker's turn records it."""
    pause = runs.lock_pause(task.pause_id)
    pause.delivery_epoch, pause.delivery_started_at = pause.run.epoch, pause.run.moment
    for status, closed_at in ((PauseStatus.DELIVERING, None), (PauseStatus.DELIVERED, pause.run.moment)):
        pause.become(status)
        pause.closed_at = closed_at
        pause.save()
    Desk().pause_closed(pause)


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
async def test_who_hears_can_be_told_to_end_at_any_moment() -> None:
    for moment in range(80):
        hints = _Hints()
        with hints.listener():
            assert hints._hearing is not None
            await asyncio.sleep(moment / 4_000)
            hints._hearing.cancel()
        done, _ = await asyncio.wait({hints._hearing}, timeout=SOON)
        assert done


async def test_without_redis_a_wait_still_ends(
    cast: Cast, door: Door, tokens: Tokens, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_deaf(monkeypatch)
    asked, task = await door.wait_at(f"runs/{run.pk}?wait=30", tokens[cast.developer])
    await door.do(lambda: steering.cancel(run.pk, by=cast.developer))
    await asyncio.wait_for(task, SOON)
    assert asked.json["status"] == "cancelled"


def be_deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Redis never answer who would hear hints."""

    async def hangs(_: Any) -> AsyncIterator[list[str]]:
        await asyncio.sleep(NEVER)
        yield []

    monkeypatch.setattr(type(get_channel_layer()), "hear", hangs)


async def test_a_check_that_breaks_has_the_request_look_for_itself(
    cast: Cast, door: Door, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(_: Any) -> bool:
        return waiting._is_so(lambda: bool(ReviewTask.objects.raw("SELECT nothing")[0]))

    asked, waiter = await door.wait_at("tasks?status=open&wait=30", tokens[cast.reviewer])
    monkeypatch.setattr(
        door.waits, "_in_thread", lambda check: door.handler.in_thread(partial(breaks, check))
    )
    task = await door.do(lambda: open_refund(by=cast.developer))
    await asyncio.wait_for(waiter, SOON)
    assert [row["id"] for row in asked.json["items"]] == [str(task.pk)]


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
    assert not queries.is_at_work(run, queries.asked_by(run))
    decide(task, cast)
    assert queries.is_at_work(run, queries.asked_by(run))


# POST


@pytest.mark.usefixtures("hints_only", "no_workers")
async def test_a_run_is_started_and_answered_when_it_is_not_at_work(
    cast: Cast, door: Door, tokens: Tokens, idler: AgentSpec
) -> None:
    body = {"agent": idler.name, "input": {}}
    asked, waiter = await door.wait_at("runs?wait=30", tokens[cast.developer], body)
    run = await Run.objects.aget()
    await door.do(lambda: steering.cancel(run.pk, by=cast.developer))
    await asyncio.wait_for(waiter, SOON)
    assert (asked.status, asked.json["id"], asked.json["status"]) == (201, str(run.pk), "cancelled")


@pytest.mark.usefixtures("hints_only")
async def test_a_decision_is_answered_when_it_took_effect(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask
) -> None:
    path, token = f"tasks/{task.pk}/decision?wait=30", tokens[cast.reviewer]
    asked, waiter = await door.wait_at(path, token, decision_on(task))
    reading, reader = await door.wait_at(path, token)
    await door.do(lambda: deliver(task))
    await asyncio.wait_for(asyncio.gather(waiter, reader), SOON)
    assert (asked.status, asked.json["verdict"], asked.json["effect"]) == (200, "approve", "delivered")
    assert reading.json == asked.json


@pytest.mark.usefixtures("hints_only")
async def test_a_decision_is_answered_when_it_cannot_take_effect_any_more(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask
) -> None:
    path = f"tasks/{task.pk}/decision?wait=30"
    asked, waiter = await door.wait_at(path, tokens[cast.reviewer], decision_on(task))
    await door.do(lambda: steering.cancel(task.run_id, by=cast.developer))
    await asyncio.wait_for(waiter, SOON)
    assert (asked.json["effect"], asked.json["run_status"]) == ("withdrawn", "cancelled")


@pytest.mark.parametrize("key", ["", "k"])
async def test_a_decision_that_waits_for_others_is_answered_at_once(
    cast: Cast, door: Door, tokens: Tokens, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(door.waits, "_until_it_has_come", None)  # nobody waits
    pause = await door.do(lambda: pause_run(refund(0), refund(1), by=cast.developer))
    task = await pause.tasks.aget(position=0)
    path = f"tasks/{task.pk}/decision?wait=30"
    asked = await door.post(path, tokens[cast.reviewer], decision_on(task), key=key)
    assert (asked.status, asked.json["effect"], asked.json["run_status"]) == (200, "pending", "waiting")


async def test_what_took_effect_before_its_post_comes_again_is_answered_at_once(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, token = f"tasks/{task.pk}/decision", tokens[cast.reviewer]
    await door.post(path, token, decision_on(task), key="k")
    await door.do(lambda: deliver(task))
    monkeypatch.setattr(door.waits, "_until_it_has_come", None)  # nobody waits
    again = await door.post(f"{path}?wait=30", token, decision_on(task), key="k")
    assert (again.json["effect"], again.headers["idempotent-replayed"]) == ("delivered", "true")


@pytest.mark.parametrize("key", ["", "k"])
@pytest.mark.parametrize("world", ["many hints", "no hints", "no Redis"])
async def test_what_is_waited_for_is_done_once_whatever_comes(
    cast: Cast,
    door: Door,
    tokens: Tokens,
    task: ReviewTask,
    monkeypatch: pytest.MonkeyPatch,
    world: str,
    key: str,
) -> None:
    if world != "many hints":
        monkeypatch.setattr(waiting, "LOOK_AGAIN_FIRST", 0.05)
        monkeypatch.setattr(waiting, "LOOK_AGAIN", 0.05)
    if world == "no hints":
        monkeypatch.setattr(live, "_send", lambda *_: None)
    if world == "no Redis":
        be_deaf(monkeypatch)
    path = f"tasks/{task.pk}/decision?wait=30"
    asked, waiter = await door.wait_at(path, tokens[cast.reviewer], decision_on(task), key=key)
    for _ in range(5):
        await door.do(lambda: live.run_changed(task.run_id))
        await asyncio.sleep(0.05)
    assert not waiter.done()
    await door.do(lambda: deliver(task))
    await asyncio.wait_for(waiter, SOON)
    assert (asked.status, asked.json["effect"]) == (200, "delivered")
    assert await Decision.objects.acount() == 1
    assert await AuditEvent.objects.filter(type__in=("decision.made", "decision.refused")).acount() == 1


async def test_with_a_key_a_post_that_comes_again_waits_again_and_does_nothing_twice(
    cast: Cast, door: Door, tokens: Tokens, idler: AgentSpec, no_workers: None
) -> None:
    body, token = {"agent": idler.name, "input": {}}, tokens[cast.developer]
    first, left = await door.wait_at("runs?wait=30", token, body, key="k")
    first.gone.set()
    await asyncio.wait_for(left, SOON)
    again, waiter = await door.wait_at("runs?wait=30", token, body, key="k")
    run = await Run.objects.aget()
    await door.do(lambda: steering.cancel(run.pk, by=cast.developer))
    await asyncio.wait_for(waiter, SOON)
    assert (again.status, again.json["id"], again.json["status"]) == (201, str(run.pk), "cancelled")
    assert again.headers["idempotent-replayed"] == "true"
    assert (first.status, await Run.objects.acount()) == (0, 1)


async def test_a_client_that_leaves_takes_nothing_back(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask
) -> None:
    path = f"tasks/{task.pk}/decision?wait=30"
    asked, waiter = await door.wait_at(path, tokens[cast.reviewer], decision_on(task))
    asked.gone.set()
    await asyncio.wait_for(waiter, SOON)
    assert (asked.status, door.waits._waiting, door.waits._hints._listeners) == (0, 0, set())
    assert (await Decision.objects.aget()).task_id == task.pk


@pytest.mark.usefixtures("looks_only")
async def test_what_a_revoked_token_did_stays_done_and_is_told_to_nobody(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask
) -> None:
    path = f"tasks/{task.pk}/decision?wait=30"
    asked, waiter = await door.wait_at(path, tokens[cast.reviewer], decision_on(task))
    await door.do(lambda: ApiToken.objects.all().delete())
    await asyncio.wait_for(waiter, SOON)
    assert (asked.status, asked.json["error"]) == (401, "unauthorized")
    assert await Decision.objects.acount() == 1


@pytest.mark.parametrize("most", [200, 0])
async def test_a_wait_that_ends_answers_what_is_known_then(
    cast: Cast,
    door: Door,
    tokens: Tokens,
    task: ReviewTask,
    idler: AgentSpec,
    no_workers: None,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    monkeypatch.setattr(waiting, "MOST", most)
    body = {"agent": idler.name, "input": {}}
    started = await door.post("runs?wait=0.3", tokens[cast.developer], body)
    decided = await door.post(f"tasks/{task.pk}/decision?wait=0.3", tokens[cast.reviewer], decision_on(task))
    assert (started.status, started.json["status"]) == (201, "queued")
    assert (decided.status, decided.json["effect"], decided.json["run_status"]) == (
        200,
        "answered",
        "waiting",
    )


@pytest.mark.parametrize("seconds", ["31", "-1", "nan", "inf", "soon"])
async def test_a_wait_that_is_none_is_refused_before_anything_is_done(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask, idler: AgentSpec, seconds: str
) -> None:
    for path, person, body in (
        ("runs", cast.developer, {"agent": idler.name, "input": {}}),
        (f"runs/{task.run_id}/input", cast.developer, {"input": {}, "close_open_reviews": True}),
        (f"tasks/{task.pk}/decision", cast.reviewer, decision_on(task)),
    ):
        found = await door.post(f"{path}?wait={seconds}", tokens[person], body)
        assert (found.status, found.json["problems"][0]["pointer"]) == (422, "/wait")
    assert await Run.objects.acount() == 1
    assert await ReviewTask.objects.filter(status="open").acount() == 1


async def test_a_refusal_is_not_waited_for(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door.waits, "_until_it_has_come", None)  # nobody waits
    stale = {"answer": APPROVE, "digest": "0" * 64}
    path = f"tasks/{task.pk}/decision?wait=30"
    assert (await door.post(path, tokens[cast.reviewer], stale)).status == 409
    assert (await door.post(path, tokens[cast.developer], decision_on(task))).status == 403
    assert (await door.post(path, tokens[cast.outsider], decision_on(task))).status == 404
    assert (await door.post("runs?wait=30", tokens[cast.developer], {"agent": "none"})).status == 422


async def test_a_decision_is_read_by_who_may_see_its_task(
    cast: Cast, door: Door, tokens: Tokens, task: ReviewTask
) -> None:
    path = f"tasks/{task.pk}/decision"
    assert (await door.ask(path, tokens[cast.reviewer])).status == 404
    made = await door.post(path, tokens[cast.reviewer], decision_on(task))
    for person, status in ((cast.reviewer, 200), (cast.developer, 200), (cast.outsider, 404)):
        assert (await door.ask(path, tokens[person])).status == status
    assert (await door.ask(path, tokens[cast.developer])).json == made.json
