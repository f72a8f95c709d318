"""What an agent's author lets take long keeps nobody but the runs that need it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents_runtime import registry, runs
from agents_runtime.engine import Engine
from agents_runtime.loading import Graph
from agents_runtime.models import AgentSpec
from agents_runtime.thread_state import ThreadState
from tests.runtime.driving import APPROVE, advance, at_once, call, fresh, give, pending, script, start
from tests.runtime.locking import is_free

pytestmark = pytest.mark.usefixtures("runtime")
PAY = script([call("pay", to="a", amount=1)])


class Import:
    """An import that takes as long as a test likes."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()


@pytest.fixture
def slow_import(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """What this process has not imported yet takes long to import."""
    slow, load = Import(), registry._load_listed

    def loaded(spec: AgentSpec) -> Graph:
        slow.began.set()
        assert slow.may_end.wait(timeout=60)
        return load(spec)

    with monkeypatch.context() as patch:
        patch.setattr(registry, "_load_listed", loaded)
        yield slow
        slow.may_end.set()


@contextmanager
def forgotten(monkeypatch: pytest.MonkeyPatch, agent: str) -> Iterator[None]:
    """This process has not imported an agent."""
    with monkeypatch.context() as patch:
        known = {key: found for key, found in registry._graphs.items() if agent not in key}
        patch.setattr(registry, "_graphs", known)
        yield


def test_while_an_agent_is_imported_the_run_that_waits_for_it_is_free(
    slow_import: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.start("t-batched", input=PAY, requested_by="tests")
    with forgotten(monkeypatch, "t-batched"):
        importing = threading.Thread(target=at_once, args=(lambda: advance(run),))
        importing.start()
        assert slow_import.began.wait(timeout=60)
        assert is_free("run", run.pk)
        slow_import.may_end.set()
        importing.join()
    assert fresh(run).status == "waiting"


def test_while_an_agent_is_imported_the_runs_of_others_go_on(
    slow_import: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_import.may_end.set()
    start("t-per-call", PAY)
    slow_import.may_end.clear()
    importing_run = runs.start("t-batched", input=PAY, requested_by="tests")
    other = runs.start("t-per-call", input=PAY, requested_by="tests")
    with forgotten(monkeypatch, "t-batched"):
        slow_import.began.clear()
        importing = threading.Thread(target=at_once, args=(lambda: advance(importing_run),))
        importing.start()
        assert slow_import.began.wait(timeout=60)
        going_on = threading.Thread(target=at_once, args=(lambda: advance(other),))
        going_on.start()
        going_on.join(timeout=10)
        is_kept, row_is_free = going_on.is_alive(), is_free("run", other.pk)
        slow_import.may_end.set()
        importing.join()
        going_on.join()
    assert (is_kept, row_is_free) == (False, True)
    assert fresh(other).status == "waiting"


def test_while_a_thread_is_read_its_run_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    run = start("t-per-call", PAY)
    give(pending(run), APPROVE)
    free, read = list[bool](), Engine.read

    def noted(engine: Engine) -> ThreadState:
        free.append(is_free("run", run.pk))
        return read(engine)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "read", noted)
        assert advance(run).status == "finished"
    assert free == [True, True]
