"""The lent connection: one thread at a time has it, none after the step, and each its own where it is not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from agents_runtime import runs
from agents_runtime.lending import Loan
from tests.agents import effects
from tests.runtime.crashing import wait_until
from tests.runtime.driving import APPROVE, advance, answer, call, pauses, script
from tests.servers import servers

SESSION = "SELECT pg_backend_pid()"
pytestmark = pytest.mark.usefixtures("committed_db")


def session() -> int:
    """Return the server's number of the session that this thread's work goes over."""
    with connection.cursor() as cursor:
        cursor.execute(SESSION)
        return int(cursor.fetchone()[0])


def elsewhere(work: Callable[[], int]) -> int:
    """Do some work in a thread of its own."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(work).result()


def test_another_thread_works_over_the_connection_of_who_waits() -> None:
    loan = Loan()
    with loan.standing():
        assert elsewhere(lambda: loan.use(session)) == session()


def test_nobody_has_it_once_the_step_is_over() -> None:
    loan = Loan()
    with loan.standing():
        pass
    assert elsewhere(lambda: loan.use(session)) != session()


def test_it_ends_only_after_the_work_that_has_begun() -> None:
    loan, begun, may_end, order = Loan(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        may_end.wait(timeout=30)
        order.append("work")

    with ExitStack() as step:
        step.enter_context(loan.standing())
        thread = threading.Thread(target=loan.use, args=(work,))
        thread.start()
        begun.wait(timeout=30)
        threading.Timer(0.2, may_end.set).start()
    order.append("over")
    thread.join()
    assert order == ["work", "over"]


def test_one_inside_a_transaction_is_not_lent() -> None:
    loan = Loan()
    with transaction.atomic(), loan.standing():
        assert elsewhere(lambda: loan.use(session)) != session()


def held() -> int:
    """Return how many of the pool's places somebody else has."""
    connection.close()
    stats = connection.pool.get_stats()  # type: ignore[attr-defined]
    return int(stats["pool_size"] - stats["pool_available"])


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("tools", [["look"], ["look", "look"], ["pay"], ["pay", "look"]])
@pytest.mark.parametrize("ends", [True, False])
def test_what_a_tool_opened_itself_goes_back_to_the_pool(tools: list[str], *, ends: bool) -> None:
    of_tool = {"look": call("look", what="x"), "pay": call("pay", to="a", amount=1)}
    run = runs.start("t-per-call", input=script([of_tool[tool] for tool in tools]), requested_by="tests")
    before = held()
    for tool in tools:
        effects.flag(f"read_{tool}").touch()
        if not ends:
            effects.flag(f"fail_{tool}").touch()
    advance(run)
    for pause in pauses(run):
        answer(pause, APPROVE)
    assert all(effects.count(f"{tool}_read") for tool in tools)
    wait_until(lambda: held() == before, seconds=5)


@pytest.mark.usefixtures("runtime")
def test_what_a_node_opened_itself_goes_back_to_the_pool() -> None:
    run, before = runs.start("t-payer", input={"ask": "x"}, requested_by="tests"), held()
    effects.flag("read_in_node").touch()
    advance(run)
    assert effects.count("read_in_node")
    wait_until(lambda: held() == before, seconds=5)


def test_what_is_recorded_is_no_part_of_a_transaction_that_the_tool_is_in() -> None:
    loan = Loan()

    def work() -> int:
        with transaction.atomic():
            own = session()
            assert loan.use(session) != own
            assert not loan.use(lambda: connection.in_atomic_block)
            assert session() == own
        connection.close()
        return own

    with loan.standing():
        elsewhere(work)
    elsewhere(work)


def test_who_is_torn_from_waiting_for_the_work_that_has_begun_lends_no_more() -> None:
    loan, begun, may_end = Loan(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(timeout=30)

    def tear(*_: object) -> None:
        raise SystemExit

    thread, before = threading.Thread(target=loan.use, args=(work,)), signal.signal(signal.SIGALRM, tear)
    try:
        with suppress(SystemExit), loan.standing():
            thread.start()
            begun.wait(timeout=30)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
    finally:
        signal.signal(signal.SIGALRM, before)
        may_end.set()
        thread.join()
    assert elsewhere(lambda: loan.use(session)) != session()


def test_a_thread_has_its_own_again_afterwards() -> None:
    loan = Loan()

    def work() -> int:
        own = session()
        assert loan.use(session) != own
        assert session() == own
        connection.close()
        return own

    with loan.standing():
        assert elsewhere(work) != session()


def test_several_threads_have_it_one_after_the_other() -> None:
    loan, inside, most = Loan(), list[int](), list[int]()

    def work() -> int:
        inside.append(1)
        most.append(len(inside))
        with transaction.atomic():
            found = session()
        inside.pop()
        return found

    with loan.standing(), ThreadPoolExecutor(max_workers=8) as threads:
        found = set(threads.map(lambda _: loan.use(work), range(40)))
    assert found == {session()}
    assert max(most) == 1


def test_one_that_broke_is_replaced_for_the_next() -> None:
    loan = Loan()

    def work() -> int:
        with psycopg.connect(servers().superuser_url, autocommit=True) as link:
            link.execute("SELECT pg_terminate_backend(%s)", [session()])
        return session()

    with loan.standing():
        with pytest.raises(DatabaseError):
            elsewhere(lambda: loan.use(work))
        assert elsewhere(lambda: loan.use(session)) == session()
