"""What a graph is made of: its tools, its gates, how it pauses, and whether it needs an event loop.

Lives here: looking, without running or changing anything. A compiled graph keeps no list of its middleware,
but its nodes' closures still hold them (facts: guard.md section 10); this walks them, bounded, best effort.
Does not live here: what is done with the findings (``registry``, ``fingerprint``).

An author whose gates cannot be seen from here names them in langgraph.json (``listings``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from langchain_core.tools import BaseTool
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from agents_runtime.canonical import Json
from agents_runtime.listings import Gate
from agents_runtime.loading import Graph

MAX_OBJECTS = 20_000
MAX_ITEMS = 1_000
# Each hook may be written in a sync and an async form; having only the second one makes the graph async.
HOOKS = (("wrap_tool_call", "awrap_tool_call"), ("wrap_model_call", "awrap_model_call"))
ANY_OBJECT: Json = {"type": "object"}


@dataclass(frozen=True)
class ToolFace:
    """A tool as people meet it; ``title`` is the author's template, such as ``Refund {amount}``."""

    description: str
    args_schema: Json
    title: str


@dataclass(frozen=True, order=True)
class Shape:
    """What a thread of a graph can wait at, and what it remembers; names in order."""

    nodes: tuple[str, ...]
    channels: tuple[str, ...]
    stops_before: tuple[str, ...]
    stops_after: tuple[str, ...]


@dataclass(frozen=True)
class Anatomy:
    """The findings; ``mode`` is a value of ``AgentSpec.Mode``.

    ``gates`` has one gate for each tool; ``gatekeepers`` has them apart, as (mode, gates) of each middleware
    that asks. ``inner`` are the shapes of subgraphs, and of the graphs that tools call.
    """

    shape: Shape
    inner: tuple[Shape, ...]
    tools: Mapping[str, ToolFace]
    gates: Mapping[str, Gate]
    gatekeepers: tuple[tuple[str, Mapping[str, Gate]], ...]
    mode: str
    is_async: bool


def examine(graph: Graph) -> Anatomy:
    """Look through a graph, its subgraphs, and the graphs that its tools call."""
    parts = list(reachable(graph))
    gatekeepers = [part for part in parts if isinstance(part, HumanInTheLoopMiddleware) and part.interrupt_on]
    return Anatomy(
        shape=_shape(graph),
        inner=tuple(sorted(_shape(part) for part in parts if isinstance(part, Pregel) and part is not graph)),
        tools=_tools(part for part in parts if isinstance(part, ToolNode)),
        gates=_gates(gatekeepers),
        gatekeepers=tuple((str(keeper.interrupt_mode), _gates([keeper])) for keeper in gatekeepers),
        mode=_mode(gatekeepers),
        is_async=any(_is_async_only(part) for part in parts),
    )


def _shape(graph: Graph) -> Shape:
    return Shape(
        nodes=tuple(sorted(graph.nodes)),
        channels=tuple(
            sorted(f"{name}:{type(channel).__name__}" for name, channel in graph.channels.items())
        ),
        stops_before=tuple(sorted(graph.interrupt_before_nodes)),
        stops_after=tuple(sorted(graph.interrupt_after_nodes)),
    )


def _mode(gatekeepers: Iterable[HumanInTheLoopMiddleware[Any, Any, Any]]) -> str:
    modes = {gatekeeper.interrupt_mode for gatekeeper in gatekeepers}
    if len(modes) > 1:
        return "mixed"
    return str(modes.pop()) if modes else "none"


def _gates(gatekeepers: Iterable[HumanInTheLoopMiddleware[Any, Any, Any]]) -> dict[str, Gate]:
    """Return the gates by tool; a name that several agents of one graph gate gets what any of them allows."""
    found: dict[str, Gate] = {}
    for gatekeeper in gatekeepers:
        for tool, config in gatekeeper.interrupt_on.items():
            before = found.get(tool, Gate())
            decisions = dict.fromkeys((*before.decisions, *config["allowed_decisions"]))
            is_conditional = before.is_conditional or config.get("when") is not None
            hints = getattr(gatekeeper, "hints", {}).get(tool, before.hints)
            found[tool] = Gate(tuple(decisions), is_conditional, hints)
    return found


def _tools(nodes: Iterable[ToolNode]) -> dict[str, ToolFace]:
    found: dict[str, ToolFace] = {}
    for node in nodes:
        for name, tool in node.tools_by_name.items():
            found.setdefault(name, _face(tool))
    return found


def _face(tool: BaseTool) -> ToolFace:
    title = (tool.metadata or {}).get("title")
    return ToolFace(
        description=inspect.cleandoc(tool.description or ""),
        args_schema=_args_schema(tool),
        title=title if isinstance(title, str) else "",
    )


def _args_schema(tool: BaseTool) -> Json:
    """Return the schema that the model sees; arguments that the graph injects are not in it."""
    try:
        schema = tool.tool_call_schema
        return schema if isinstance(schema, dict) else _model_schema(schema)
    except (PydanticUserError, TypeError, KeyError):  # a type without a JSON form: any object is shown
        return ANY_OBJECT


def _model_schema(schema: Any) -> Json:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    return schema.schema()


def _is_async_only(part: object) -> bool:
    """Say whether a node, tool or hook has no sync form; then the whole run needs an event loop."""
    if isinstance(part, RunnableCallable):
        return part.func is None
    if isinstance(part, BaseTool):
        return getattr(part, "func", True) is None and getattr(part, "coroutine", None) is not None
    if isinstance(part, AgentMiddleware):
        return any(_has(part, asynchronous) and not _has(part, sync) for sync, asynchronous in HOOKS)
    return False


def _has(middleware: AgentMiddleware[Any, Any, Any], hook: str) -> bool:
    return getattr(type(middleware), hook) is not getattr(AgentMiddleware, hook)


def reachable(graph: Graph) -> Iterator[object]:
    """Give everything that can be reached from the graph, nearest first."""
    seen: set[int] = set()
    waiting: list[object] = [graph]
    for part in waiting:  # grows while we go
        if id(part) in seen or len(seen) >= MAX_OBJECTS:
            continue
        seen.add(id(part))
        yield part
        waiting.extend(_children(part))


def _children(part: object) -> Iterator[object]:
    """Give what a part leads to; a chat model and plain data lead nowhere."""
    if isinstance(part, BaseLanguageModel):
        return iter(())
    if isinstance(part, Pregel):
        return _of_graph(part)
    if isinstance(part, FunctionType):
        return _of_function(part)
    if isinstance(part, MethodType):
        return iter((part.__func__, part.__self__, *_callables_of(part.__self__)))
    if isinstance(part, functools.partial):
        return iter((part.func, *part.args, *part.keywords.values()))
    if isinstance(part, AgentMiddleware):
        return _callables_of(part)
    if isinstance(part, Mapping):
        return iter(list(part.values())[:MAX_ITEMS])
    if isinstance(part, (list, tuple, set, frozenset)):
        return iter(list(part)[:MAX_ITEMS])
    return _of_runnable(part)


def _of_graph(graph: Graph) -> Iterator[object]:
    for node in graph.nodes.values():
        yield from (node.bound, *node.writers)
    builder = getattr(graph, "builder", None)
    if isinstance(builder, StateGraph):  # the functions that choose the next node
        yield from (branch.path for by_name in builder.branches.values() for branch in by_name.values())


def _of_runnable(part: object) -> Iterator[object]:
    if isinstance(part, ToolNode):
        yield from part.tools_by_name.values()
        yield from (part._wrap_tool_call, part._awrap_tool_call)  # noqa: SLF001  there is no public way to them
    if isinstance(part, RunnableCallable):
        yield from (part.func, part.afunc)
    if isinstance(part, (RunnableSequence, RunnableSeq)):
        yield from part.steps
    if isinstance(part, RunnableBinding):
        yield part.bound
    if isinstance(part, BaseTool):
        yield from (getattr(part, "func", None), getattr(part, "coroutine", None))
        yield from _callables_of(part)


def _callables_of(owner: object) -> Iterator[object]:
    """Give the attributes of an object that may lead further."""
    for value in getattr(owner, "__dict__", {}).values():
        if isinstance(value, (Runnable, AgentMiddleware, list, tuple, dict)) or inspect.isroutine(value):
            yield value


def _of_function(function: FunctionType) -> Iterator[object]:
    yield getattr(function, "__wrapped__", None)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a cell that nothing was put in yet
            continue
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if _may_lead_to_a_graph(value, function.__module__):
            yield value


def _names(code: CodeType) -> Iterator[str]:
    """Give the global names that a function uses, also in functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _may_lead_to_a_graph(value: object, module: str) -> bool:
    """Say whether a global that a function uses is a graph, or a function beside it that may use one."""
    if isinstance(value, FunctionType):
        return value.__module__ == module
    return isinstance(value, (Pregel, BaseTool, ToolNode))
