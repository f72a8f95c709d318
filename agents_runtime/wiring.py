"""How the parts of an agent stand to each other: orders and gaps by which a gate would not hold.

Lives here: looking at chains of middleware around tools; it walks closures, like ``anatomy``, best effort.
Does not live here: what is done with the findings (``registry``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType, MethodType

from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolErrorMiddleware, ToolRetryMiddleware
from langgraph.prebuilt import ToolNode

from agents_runtime.anatomy import reachable
from agents_runtime.listings import Gate
from agents_runtime.loading import Graph

WRONG_ORDER = (
    "{other} stands before {gate} in its middleware. It would take an answer that the agent refuses for an "
    "error of the tool, and a tool that failed would be asked about again and run twice. List {gate} first."
)
GAP_CLOSED = (
    "{tool} is gated in one of its agents and not in another one that has the tool, too. Calls there are "
    "refused, because nobody is asked. Gate it there as well (Deep Agents: also in general-purpose)."
)
GAP_OPEN = (
    "{tool} is gated on a condition in one of its agents and not at all in another one that has the tool, "
    "too. There it runs unasked. Gate it there as well (Deep Agents: also in general-purpose)."
)

Gatekeeper = HumanInTheLoopMiddleware


def flaws(graph: Graph) -> tuple[str, ...]:
    """Say why no run of this graph may start: its middleware stands in an order by which a gate is undone."""
    found = (
        WRONG_ORDER.format(other=type(part).__name__, gate=gate.name)
        for chain in _chains(graph)
        for place, gate in enumerate(chain)
        if isinstance(gate, Gatekeeper) and gate.interrupt_mode == "per_call"
        for part in chain[:place]
        if any(_handles(part, tool) for tool in gate.interrupt_on)
    )
    return tuple(dict.fromkeys(found))


def gaps(graph: Graph, gates: Mapping[str, Gate]) -> tuple[str, ...]:
    """Say which of the tools that ``gates`` has an agent of this graph could call without a gate."""
    missing = {
        tool
        for node in _tool_nodes(graph)
        for tool in gates.keys() & node.tools_by_name.keys() - _gated_by(_chain_of(node))
    }
    return tuple(
        (GAP_OPEN if gates[tool].is_conditional else GAP_CLOSED).format(tool=tool) for tool in sorted(missing)
    )


def _handles(part: object, tool: str) -> bool:
    """Say whether a middleware takes errors of a tool into its own hands."""
    if isinstance(part, ToolRetryMiddleware):
        return part._should_retry_tool(tool)  # noqa: SLF001  there is no public way to ask
    if isinstance(part, ToolErrorMiddleware):
        return part._should_handle_tool(tool)  # noqa: SLF001
    return False


def _gated_by(chain: list[object]) -> set[str]:
    return {tool for part in chain if isinstance(part, Gatekeeper) for tool in part.interrupt_on}


def _tool_nodes(graph: Graph) -> Iterator[ToolNode]:
    return (part for part in reachable(graph) if isinstance(part, ToolNode))


def _chains(graph: Graph) -> Iterator[list[object]]:
    return (_chain_of(node) for node in _tool_nodes(graph))


def _chain_of(node: ToolNode) -> list[object]:
    """Return the middleware around the tools of a node, outermost first."""
    sync = list(_unfold(node._wrap_tool_call))  # noqa: SLF001  there is no public way to them
    return sync or list(_unfold(node._awrap_tool_call))  # noqa: SLF001


def _unfold(wrapper: object) -> Iterator[object]:
    """Take apart what LangChain composes of two wrappers, each of which may be composed, too."""
    if isinstance(wrapper, MethodType):
        yield wrapper.__self__
        return
    inside = getattr(wrapper, "__wrapped__", None)
    if inside is not None:
        yield from _unfold(inside)
        return
    cells = _cells(wrapper)
    if {"outer", "inner"} <= cells.keys():
        yield from _unfold(cells["outer"])
        yield from _unfold(cells["inner"])


def _cells(function: object) -> dict[str, object]:
    if not isinstance(function, FunctionType):
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells}
