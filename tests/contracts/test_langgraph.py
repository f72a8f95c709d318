"""What the runtime rests on in LangGraph and LangChain. If one of these fails after an upgrade, read
facts on the library's new behaviour before anything else: a promise of ours depends on it."""

from __future__ import annotations

import importlib.metadata
import operator
from typing import Annotated, Any, TypedDict

import pytest
import xxhash
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde import _msgpack
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp, ParentCommand, UnknownInterruptError, is_invalid_resume
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from packaging.version import Version
from pydantic import BaseModel, ValidationError

from tests.agents.playbook import Playbook
from tests.runtime.driving import call, script

STRICT = "__pregel_strict_resume"
MINIMUM = {
    "Django": "5.2.16",
    "channels": "4.3.2",
    "daphne": "4.2.2",
    "celery": "5.7.0",
    "redis": "8.1.0",
    "langgraph": "1.2.24",
    "langgraph-checkpoint": "4.3.2",
    "langgraph-checkpoint-postgres": "3.2.0",
    "langgraph-sdk": "0.3.15",
    "langchain": "1.5.2",
}
APPROVE = {"type": "approve"}
REJECT = {"type": "reject"}
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool
def first(x: int) -> str:
    """Run the first tool."""
    ran.append("first")
    return f"first {x}"


@tool
def second(x: int) -> str:
    """Run the second tool."""
    ran.append("second")
    if x < 0:
        raise RuntimeError("second does not work")
    return f"second {x}"


class Stop(GraphBubbleUp):
    """Stops a tool."""


class Gate(BaseCallbackHandler):
    """Raises at the start of the named tool."""

    raise_error = True
    run_inline = True

    def __init__(self, name: str, error: Any = None) -> None:
        self.name, self.error = name, error
        self.seen: list[dict[str, Any]] = []

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **details: Any) -> None:
        self.seen.append({"name": serialized["name"], **details})
        if serialized["name"] == self.name:
            raise self.error(details) if callable(self.error) else Stop


class LateGate(AsyncCallbackHandler):
    """The same, but asynchronous."""

    raise_error = True
    run_inline = True

    async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **details: Any) -> None:
        raise Stop


def agent(mode: Any = "per_call", when: Any = None) -> Any:
    allowed: Any = {"allowed_decisions": ["approve", "edit", "reject"]}
    if when:
        allowed["when"] = when
    gate = HumanInTheLoopMiddleware(interrupt_on={"first": allowed, "second": allowed}, interrupt_mode=mode)
    return create_agent(Playbook(), [first, second], middleware=[gate]).copy(
        {"checkpointer": InMemorySaver()}
    )


def config(*callbacks: Any, strict: bool = True) -> RunnableConfig:
    return {"configurable": {"thread_id": "t", STRICT: strict}, "callbacks": list(callbacks)}


def paused(graph: Any, *calls: Any) -> dict[str, str]:
    """Start a graph on two gated calls; return the interrupt ids by tool."""
    graph.invoke(script(list(calls) or [call("first", x=1), call("second", x=2)]), config())
    return ids(graph)


def ids(graph: Any) -> dict[str, str]:
    return {one.value["name"]: one.id for one in graph.get_state(config()).interrupts}


def answers(graph: Any) -> list[str]:
    messages = graph.get_state(config()).values["messages"]
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("name", sorted(MINIMUM))
def test_no_library_is_older_than_its_last_hole(name: str) -> None:
    assert Version(importlib.metadata.version(name)) >= Version(MINIMUM[name])


def test_an_interrupt_is_named_by_its_task_and_keeps_its_name() -> None:
    graph = agent()
    before = paused(graph)
    for task in graph.get_state(config()).tasks:
        (raised,) = task.interrupts
        assert raised.id == xxhash.xxh3_128_hexdigest(f"tools:{task.id}".encode())
        assert raised.response_schema["oneOf"]
    graph.invoke(None, config())
    graph.invoke(Command(resume={before["first"]: REJECT}), config())
    assert ids(graph) == {"second": before["second"]}
    assert ran == []


def test_the_second_question_of_a_task_carries_a_number() -> None:
    class State(TypedDict):
        said: Annotated[list[Any], operator.add]

    def ask(state: State) -> State:
        return {"said": [interrupt("one"), interrupt("two")]}

    graph = one_node(State, ask)
    graph.invoke({"said": []}, config())
    (task,) = graph.get_state(config()).tasks
    graph.invoke(Command(resume={task.interrupts[0].id: 1}), config())
    (later,) = graph.get_state(config()).interrupts
    assert later.id == xxhash.xxh3_128_hexdigest(f"ask:{task.id}|1".encode())


def test_strict_resume_refuses_what_is_not_pending() -> None:
    graph = agent()
    pending = paused(graph)
    graph.invoke(Command(resume={pending["first"]: APPROVE}), config())
    for wrong in ({"0" * 32: APPROVE}, {pending["first"]: APPROVE}, {}):
        with pytest.raises(UnknownInterruptError):
            graph.invoke(Command(resume=wrong), config())
    assert ran == ["first"]
    with pytest.raises(UnknownInterruptError):
        graph.invoke(
            Command(resume={"0" * 32: APPROVE}), {"configurable": {"thread_id": "none", STRICT: True}}
        )


def test_without_strict_resume_a_spent_answer_looks_like_success() -> None:
    graph = agent()
    pending = paused(graph)
    graph.invoke(Command(resume={pending["first"]: APPROVE}), config())
    graph.invoke(Command(resume={pending["first"]: APPROVE}), config(strict=False))
    assert ran == ["first"]


def test_an_invalid_answer_is_marked_stored_nowhere_and_can_be_given_again() -> None:
    graph = agent()
    pending = paused(graph)
    edited = {"type": "edit", "edited_action": {"name": "first", "args": {"x": "?"}}}
    with pytest.raises(ValidationError) as raised:
        graph.invoke(Command(resume={pending["first"]: edited}), config())
    assert is_invalid_resume(raised.value)
    assert "__resume__" not in {channel for _, channel, _ in stored_writes(graph)}
    graph.invoke(Command(resume={pending["first"]: APPROVE}), config())
    assert ran == ["first"]


@pytest.mark.parametrize("use_loop", [False, True])
async def test_a_handler_that_raises_stops_the_tool_and_leaves_the_pause(*, use_loop: bool) -> None:
    graph = agent()
    pending = paused(graph)
    gate = Gate("first")
    command: Any = Command(resume={pending["first"]: APPROVE})
    with pytest.raises(Stop):
        await graph.ainvoke(command, config(gate)) if use_loop else graph.invoke(command, config(gate))
    assert ran == []
    assert ids(graph) == pending
    (seen,) = gate.seen
    assert seen["inputs"] == {"x": 1}
    assert seen["tool_call_id"] == "call_0_0"
    assert xxhash.xxh3_128_hexdigest(seen["metadata"]["langgraph_checkpoint_ns"].encode()) == pending["first"]
    graph.invoke(command, config())
    assert ran == ["first"]


async def test_an_async_handler_would_let_a_sync_tool_pass() -> None:
    """The reason why the gate is a synchronous handler."""
    graph = agent()
    pending = paused(graph)
    graph.invoke(Command(resume={pending["first"]: APPROVE}), config(LateGate()))
    assert ran == ["first"]


@pytest.mark.parametrize("use_loop", [False, True])
async def test_a_command_raised_by_a_handler_ends_the_task_with_its_result(*, use_loop: bool) -> None:
    def replayed(details: Any) -> ParentCommand:
        message = ToolMessage("given again", tool_call_id=details["tool_call_id"])
        task = details["metadata"]["langgraph_checkpoint_ns"]
        return ParentCommand(Command(graph=task, update={"messages": [message]}))

    graph = agent()
    pending = paused(graph)
    command: Any = Command(resume={pending["first"]: APPROVE})
    gate = Gate("first", replayed)
    await graph.ainvoke(command, config(gate)) if use_loop else graph.invoke(command, config(gate))
    assert ids(graph) == {"second": pending["second"]}
    graph.invoke(Command(resume={pending["second"]: APPROVE}), config())
    assert graph.get_state(config()).next == ()
    assert answers(graph) == ["given again", "second 2"]
    assert ran == ["second"]


def test_a_handler_stands_before_the_tools_of_a_subagent() -> None:
    worker: Any = create_agent(Playbook(), [first])

    @tool
    def delegate(task: str) -> str:
        """Let the subagent do it."""
        return str(worker.invoke({"messages": [("user", task)]})["messages"][-1].content)

    graph: Any = create_agent(Playbook(), [delegate])
    task = script([call("first", x=1)])["messages"][0]["content"]
    gate = Gate("first")
    with pytest.raises(Stop):
        graph.invoke(script([call("delegate", task=task)]), {"callbacks": [gate]})
    assert ran == []
    assert gate.seen[-1]["metadata"]["langgraph_checkpoint_ns"].count("tools:") == 2


def test_a_tool_that_raises_keeps_its_approval_and_looks_pending() -> None:
    graph = agent()
    pending = paused(graph, call("second", x=-1))
    with pytest.raises(RuntimeError):
        graph.invoke(Command(resume={pending["second"]: APPROVE}), config())
    assert ids(graph) == pending
    assert "__resume__" in {channel for _, channel, _ in stored_writes(graph)}
    with pytest.raises(RuntimeError):  # the rejection is ignored, and the tool runs again
        graph.invoke(Command(resume={pending["second"]: REJECT}), config())
    assert ran == ["second", "second"]


def test_a_condition_that_flips_lets_a_rejected_tool_run() -> None:
    asks = [True]
    graph = agent(when=lambda _: asks[0])
    pending = paused(graph, call("first", x=1))
    asks[0] = False
    graph.invoke(Command(resume={pending["first"]: REJECT}), config())
    assert ran == ["first"]


def test_a_batch_with_a_wrong_answer_can_never_be_answered_again() -> None:
    graph = agent("batched")
    graph.invoke(script([call("first", x=1)]), config())
    (raised,) = graph.get_state(config()).interrupts
    assert set(raised.value) == {"action_requests", "review_configs"}
    for decisions in ([], [APPROVE]):
        with pytest.raises(ValueError, match="does not match"):
            graph.invoke(Command(resume={raised.id: {"decisions": decisions}}), config())
    assert ran == []


def test_new_input_drops_what_is_pending() -> None:
    graph = agent()
    paused(graph)
    graph.invoke(script([]), config())
    assert ids(graph) == {}


def test_a_breakpoint_raises_no_interrupt_and_goes_on_with_nothing() -> None:
    class State(TypedDict):
        said: Annotated[list[str], operator.add]

    def act(state: State) -> State:
        return {"said": ["acted"]}

    builder = StateGraph(State)
    builder.add_node("act", act)
    builder.add_edge(START, "act")
    graph = builder.compile(interrupt_before=["act"]).copy({"checkpointer": InMemorySaver()})
    graph.invoke({"said": []}, config())
    state = graph.get_state(config())
    assert (state.next, state.interrupts) == (("act",), ())
    assert graph.interrupt_before_nodes == ["act"]
    graph.invoke(None, config())
    assert graph.get_state(config()).values == {"said": ["acted"]}


def test_a_renamed_node_reads_as_finished() -> None:
    """The reason why a build is compared before a thread is read, and its step once it is."""

    class State(TypedDict):
        said: Annotated[list[Any], operator.add]

    def ask(state: State) -> State:
        return {"said": [interrupt("?")]}

    before = one_node(State, ask)
    before.invoke({"said": []}, config())
    ask.__name__ = "ask_kindly"
    after = one_node(State, ask).copy({"checkpointer": before.checkpointer})
    state = after.get_state(config())
    assert (state.next, state.tasks, state.interrupts) == ((), (), ())
    assert state.config == before.get_state(config()).config


def test_a_first_answer_given_again_without_strict_resume_answers_the_next_question() -> None:
    class State(TypedDict):
        said: Annotated[list[Any], operator.add]

    def ask(state: State) -> State:
        return {"said": [interrupt("one"), interrupt("two")]}

    graph = one_node(State, ask)
    graph.invoke({"said": []}, config())
    (first,) = graph.get_state(config()).interrupts
    graph.invoke(Command(resume={first.id: 1}), config())
    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume={first.id: 1}), config())
    graph.invoke(Command(resume={first.id: 1}), config(strict=False))
    assert graph.get_state(config()).values == {"said": [1, 1]}


def test_a_scalar_answer_is_kept_for_whoever_asks_next() -> None:
    """The reason why no answer is ever handed over without its id."""

    class State(TypedDict):
        said: Annotated[list[Any], operator.add]

    def ask(state: State) -> State:
        return {"said": [interrupt("one"), interrupt("two")]}

    graph = one_node(State, ask)
    graph.invoke({"said": []}, config())
    graph.invoke(Command(resume="mine"), config())
    assert "__resume__" in {channel for _, channel, _ in stored_writes(graph)}


@pytest.mark.parametrize(("key", "is_scalar"), [("f" * 32, False), ("F" * 32, True), ("f" * 31, True)])
def test_what_counts_as_an_id_in_an_answer(key: str, *, is_scalar: bool) -> None:
    class State(TypedDict):
        said: Annotated[list[Any], operator.add]

    def ask(state: State) -> State:
        return {"said": [interrupt("one")]}

    graph = one_node(State, ask)
    graph.invoke({"said": []}, config())
    graph.invoke(Command(resume={key: 1}), config(strict=False))
    said = graph.get_state(config()).values["said"]
    assert said == ([{key: 1}] if is_scalar else [])


def test_a_copy_with_a_saver_leaves_the_authors_graph_alone() -> None:
    graph = create_agent(Playbook(), [first])
    copied = graph.copy({"checkpointer": InMemorySaver()})
    assert graph.checkpointer is None
    assert copied.checkpointer is not None
    assert copied.nodes == graph.nodes


def test_tasks_are_streamed_with_their_ids_and_results() -> None:
    graph = agent()
    chunks = list(
        graph.stream(
            script([call("first", x=1)]), config(), stream_mode=["tasks", "messages"], subgraphs=True
        )
    )
    tasks = [payload for _, mode, payload in chunks if mode == "tasks"]
    assert {"id", "name", "result", "error", "interrupts"} <= set(tasks[1])
    assert [one["value"]["name"] for task in tasks for one in task.get("interrupts", [])] == ["first"]


class Unknown(BaseModel):
    """A type that nobody allowed."""

    x: int = 1


def test_strict_msgpack_makes_no_objects_of_unknown_types() -> None:
    assert _msgpack.STRICT_MSGPACK_ENABLED
    serializer = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert not isinstance(serializer.loads_typed(serializer.dumps_typed(Unknown())), Unknown)


def stored_writes(graph: Any) -> list[Any]:
    return list(graph.checkpointer.get_tuple(config()).pending_writes)


def one_node(state: Any, function: Any) -> Any:
    builder = StateGraph(state)
    builder.add_node(function.__name__, function)
    builder.add_edge(START, function.__name__)
    builder.add_edge(function.__name__, END)
    return builder.compile(checkpointer=InMemorySaver())
