"""What a run shows while it works, and that showing it never breaks or slows it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Any, ClassVar, TypedDict
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from langchain_core.callbacks import manager
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import StateGraph
from pytest_django.fixtures import Settings

from agents_runtime import runs
from agents_runtime.canonical import decode
from agents_runtime.chat_model import Say, ScriptedChatModel
from agents_runtime.desk import Progress, get_desk
from agents_runtime.engine import Engine
from agents_runtime.gate import Gate
from agents_runtime.messages import text_of
from agents_runtime.models import Run, RunStep
from agents_runtime.streams import Listener, Reporter, keep
from agents_runtime.thread_state import Delivery, Outcome
from reviewer.intake import Desk
from tests.agents import effects
from tests.runtime.crashing import wait_until
from tests.runtime.driving import APPROVE, advance, answer, at_once, call, give, pending, script, start

pytestmark = pytest.mark.usefixtures("runtime")
reports: list[tuple[float, Progress]] = []


class RecordingDesk(Desk):
    """The real desk, which also keeps what it was told of progress."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """Keep it, and pass it on."""
        reports.append((time.monotonic(), progress))
        super().run_progressed(run, progress)


class BrokenDesk(Desk):
    """A desk that cannot show anything."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """Fail slowly."""
        time.sleep(0.05)
        raise OSError("nobody can see this")


@pytest.fixture(autouse=True)
def recording(settings: Settings) -> Iterator[None]:
    reports.clear()
    use_desk(settings, RecordingDesk)
    yield
    get_desk.cache_clear()


def use_desk(settings: Settings, desk: type[Desk]) -> None:
    """Make the runtime speak to this desk."""
    settings.COUNTERSIGN_DESK = f"{__name__}.{desk.__name__}"
    get_desk.cache_clear()


def test_a_run_tells_its_steps_once() -> None:
    run = start("t-per-call", script([call("look", what="x"), call("pay", to="a", amount=1)], say="Well."))
    run = answer(pending(run), APPROVE)
    told = [(step.kind, step.name, step.text) for step in RunStep.objects.filter(run=run)]
    assert told == [
        ("input", "", ""),
        ("model", "", "Well."),
        ("tool", "look", "saw x"),
        ("tool", "pay", "paid 1 to a"),
        ("model", "", "done: saw x | paid 1 to a"),
    ]
    spoken = RunStep.objects.get(run=run, text="Well.")
    assert [made["name"] for made in decode(spoken.data)["tool_calls"]] == ["look", "pay"]
    reported = {key for _, progress in reports for key in progress.steps}
    assert reported == set(
        RunStep.objects.filter(run=run).exclude(kind="input").values_list("key", flat=True)
    )


def test_text_is_reported_as_it_is_spoken_at_most_ten_times_a_second() -> None:
    said = " ".join(f"word{place}" for place in range(120))
    run = start("t-talker", script([], say=said))
    assert run.status == "finished", run.error
    spoken = [(at, text) for at, progress in reports for _, text in progress.tokens]
    assert "".join(text for _, text in spoken).split() == said.split()
    assert len(spoken) > 2
    times = [at for at, progress in reports if progress.tokens]
    assert all(later - earlier >= 0.09 for earlier, later in itertools.pairwise(times[:-1]))


def test_a_desk_that_cannot_show_progress_does_not_harm_the_run(settings: Settings) -> None:
    use_desk(settings, BrokenDesk)
    run = start("t-talker", script([], say="one two three"))
    assert run.status == "finished", run.error


def test_a_chunk_that_cannot_be_read_is_skipped() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    with Reporter(run) as reporter:
        reporter.take("what is this?")
        reporter.take(((), "tasks", {"id": 1}))
        reporter.take(((), "messages", ()))


def test_a_repeated_step_is_told_once() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    before = RunStep.objects.filter(run=run).count()
    run = advance(run)
    assert RunStep.objects.filter(run=run).count() == before
    give(pending(run), APPROVE)
    advance(run)
    keys = list(RunStep.objects.filter(run=run).values_list("key", flat=True))
    assert len(keys) == len(set(keys)) == before + 2


def test_a_short_step_stores_what_it_did_with_what_it_came_to() -> None:
    run = start("t-per-call", script([call("look", what="x"), call("pay", to="a", amount=1)]))
    assert RunStep.objects.filter(run=run, name="look").exists()
    assert [progress.tokens for _, progress in reports] == [()]


def test_a_long_step_tells_meanwhile_what_it_did_though_no_model_speaks() -> None:
    effects.flag("wait_look").touch()
    run = runs.start("t-per-call", input=script([call("look", what="x")]), requested_by="tests")

    def watch() -> None:
        wait_until(lambda: RunStep.objects.filter(run=run, kind="model").exists())
        assert effects.count("look") == 0
        effects.flag("wait_look").unlink()

    at_once(lambda: advance(run), watch)
    assert effects.count("look") == 1


def _connections_in_use() -> int:
    pool: Any = connection.pool  # type: ignore[attr-defined]
    stats = pool.get_stats()
    return int(stats["pool_size"] - stats["pool_available"])


def test_who_reports_keeps_no_connection_until_the_next_report() -> None:
    run = runs.start("t-per-call", input=script([call("look", what="x")]), requested_by="tests")
    before = _connections_in_use()
    with Reporter(run) as reporter:
        reporter.take(("tasks", {"id": "1", "name": "n", "result": {"x": 1}}))
        reporter.report_meanwhile()
        wait_until(lambda: RunStep.objects.filter(run=run).exists())
        wait_until(lambda: _connections_in_use() == before)


def test_what_a_stale_worker_did_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Engine.step

    def and_be_overtaken(engine: Engine, delivery: Delivery) -> Outcome:
        outcome = step(engine, delivery)
        Run.objects.filter(pk=run.pk).update(epoch=F("epoch") + 1)
        return outcome

    run = runs.start(
        "t-per-call",
        input=script([call("look", what="x"), call("pay", to="a", amount=1)]),
        requested_by="tests",
    )
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "step", and_be_overtaken)
        advance(run)
    assert not RunStep.objects.filter(run=run, name="look").exists()
    assert reports == []


def test_ids_that_no_column_can_hold_do_not_harm_the_run() -> None:
    run = runs.start("t-per-call", input=script([call("pay", to="a", amount=1)]), requested_by="tests")
    odd = f"\x00 \ud800 {'long ' * 100}"
    result = {"messages": [AIMessage("hello", id=odd, name=odd), ToolMessage("seen", tool_call_id=odd)]}
    with Reporter(run) as reporter:
        for payload in ({"id": odd, "input": {}}, {"id": odd, "name": odd, "result": result}):
            reporter.take(("tasks", payload))
        reporter.take(("tasks", {"id": odd, "name": odd, "result": {"x": 1}}))
    keep(run, reporter.rest())
    assert [step.kind for step in RunStep.objects.filter(run=run)] == ["model", "tool", "node"]


@pytest.mark.parametrize(("agent", "name"), [("t-boss", "pay"), ("t-async-boss", "apay")])
def test_what_a_subagent_did_is_told_too(agent: str, name: str) -> None:
    (given,) = script([call("look", what="y"), call(name, to="a", amount=1)])["messages"]
    run = start(agent, script([call("delegate", task=given["content"])]))
    assert RunStep.objects.filter(run=run, name="look", text="saw y").count() == 1


class Heard(Reporter):
    """Keeps the words as they come."""

    words: ClassVar[list[str]] = []

    def hear(self, message: BaseMessage) -> None:
        """Keep them."""
        if text_of(message):
            self.words.append(text_of(message))


def _heard(tags: list[str]) -> list[str]:
    Heard.words.clear()
    model = ScriptedChatModel(script=lambda _: Say("One two  three."))
    model.invoke("hello", {"callbacks": [Listener(Heard(Run()))], "tags": tags})
    return list(Heard.words)


def test_that_one_listens_makes_models_speak_word_by_word() -> None:
    assert _heard(tags=[]) == ["One ", "two  ", "three."]


def test_nothing_is_written_out_for_us_of_what_a_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr(manager, "get_buffer_string", written.append)
    listening = manager.CallbackManager.configure([Gate(uuid4(), 1), Listener(Heard(Run()))])
    listening.on_chat_model_start({}, [[HumanMessage("hello")] * 300])
    assert written == []


def test_what_an_author_wants_unheard_is_not_heard() -> None:
    assert _heard(tags=["nostream"]) == []


class Said(TypedDict):
    """What was said."""

    said: list[object]


def _speak(state: Said) -> Said:
    model = ScriptedChatModel(script=lambda _: Say("One two."))
    return {"said": [*state["said"], model.invoke("hello")]}


@pytest.mark.parametrize("is_async", [False, True])
def test_as_much_is_heard_as_the_library_streams(is_async: bool) -> None:
    builder = StateGraph(Said)
    builder.add_node("speak", _speak)
    builder.set_entry_point("speak")
    graph: Any = builder.compile()

    async def alist(*given: Any, **options: Any) -> list[Any]:
        return [chunk async for chunk in graph.astream(*given, **options)]

    def chunks(config: Any, mode: str) -> list[Any]:
        nothing: Said = {"said": []}
        if is_async:
            return asyncio.run(alist(nothing, config, stream_mode=[mode]))
        return list(graph.stream(nothing, config, stream_mode=[mode]))

    streamed = [payload[0].text for _, payload in chunks({}, "messages") if payload[0].text]
    Heard.words.clear()
    chunks({"callbacks": [Listener(Heard(Run()))]}, "tasks")
    assert Heard.words == streamed == ["One ", "two."]
