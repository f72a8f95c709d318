"""Every form in which authors write agents is loaded, and every failure is told in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from langgraph.pregel import Pregel

from agents_runtime.errors import AgentUnavailable
from agents_runtime.loading import Graph, load
from tests.registry.conftest import entry
from tests.registry.sources import ECHO

Project = Callable[..., Path]
HELLO = {"messages": [{"role": "user", "content": "hi"}]}


def _load(source: Path, name: str = "a") -> Graph:
    return load(entry(source, name))


def _failure(source: Path, name: str = "a") -> str:
    with pytest.raises(AgentUnavailable) as failure:
        _load(source, name)
    message = str(failure.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "attribute", ["graph", "builder", "make", "make_with_config", "make_with_option", "make_later"]
)
def test_each_form_of_agent_loads_and_runs(project: Project, attribute: str) -> None:
    graph = _load(project({"a": f"./agent.py:{attribute}"}, {"agent.py": ECHO}))
    assert graph.invoke(HELLO)["messages"][-1].text == "hello"


async def test_an_async_factory_loads_where_a_loop_already_runs(project: Project) -> None:
    graph = _load(project({"a": "./agent.py:make_later"}, {"agent.py": ECHO}))
    assert (await graph.ainvoke(HELLO))["messages"][-1].text == "hello"


def test_a_function_of_the_functional_api_loads(project: Project) -> None:
    source = """
from langgraph.func import entrypoint

@entrypoint()
def double(x: dict) -> int:
    return x["n"] * 2
"""
    assert _load(project({"a": "./agent.py:double"}, {"agent.py": source})).invoke({"n": 2}) == 4


def test_a_dotted_module_loads_from_the_project(project: Project) -> None:
    files = {"shop_agents/__init__.py": "", "shop_agents/echo.py": ECHO}
    assert isinstance(_load(project({"a": "shop_agents.echo:graph"}, files)), Pregel)


def test_an_attribute_may_be_inside_another(project: Project) -> None:
    source = ECHO + "\nclass agents:\n    first = graph\n"
    assert isinstance(_load(project({"a": "./agent.py:agents.first"}, {"agent.py": source})), Pregel)


def test_the_authors_object_is_given_as_it_is(project: Project) -> None:
    source = project({"a": "./agent.py:graph", "b": "./agent.py:graph"}, {"agent.py": ECHO})
    assert _load(source, "a") is _load(source, "b")
    assert _load(source).checkpointer is None


@pytest.mark.parametrize("place", ["my_agent", "src/my_agent", "deep/down/my_agent"])
def test_a_package_may_import_its_own_modules_in_both_ways(project: Project, place: str) -> None:
    files = {
        f"{place}/__init__.py": "",
        f"{place}/parts.py": ECHO,
        f"{place}/agent.py": "from .parts import builder\nfrom my_agent.parts import graph\n",
    }
    source = project({"a": f"./{place}/agent.py:graph"}, files)
    assert _load(source) is sys.modules["my_agent.parts"].graph


def test_a_file_may_import_the_files_beside_it(project: Project) -> None:
    files = {"agent.py": "from echo_parts import graph\n", "echo_parts.py": ECHO}
    assert isinstance(_load(project({"a": "./agent.py:graph"}, files)), Pregel)


def test_a_local_dependency_is_on_the_path(project: Project) -> None:
    files = {"agent.py": "from echo_library import graph\n", "lib/src/echo_library.py": ECHO}
    source = project({"a": "./agent.py:graph"}, files, dependencies=[".", "./lib", "langchain_openai"])
    assert isinstance(_load(source), Pregel)


def test_two_projects_may_both_have_an_agent_file(project: Project) -> None:
    first = project({"a": "./agent.py:graph"}, {"agent.py": ECHO}, folder="first")
    second = project({"a": "./agent.py:graph"}, {"agent.py": ECHO}, folder="second")
    assert _load(first) is not _load(second)


def test_a_project_never_silently_gets_the_modules_of_another(project: Project) -> None:
    files = {"agent.py": "from echo_parts import graph\n", "echo_parts.py": ECHO}
    first = project({"a": "./agent.py:graph"}, files, folder="first")
    second = project({"a": "./agent.py:graph"}, files, folder="second")
    _load(first)
    message = _failure(second)
    assert f"{second.parent} has a module echo_parts, but the one in {first.parent} has that name" in message


def test_type_hints_of_a_file_resolve(project: Project) -> None:
    source = """
from __future__ import annotations
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    n: Number

Number = int
builder = StateGraph(State)
builder.add_node("add", lambda state: {"n": state["n"] + 1})
builder.add_edge(START, "add")
"""
    graph = _load(project({"a": "./agent.py:builder"}, {"agent.py": source}))
    assert graph.invoke({"n": 1}) == {"n": 2}


@pytest.mark.parametrize(
    ("target", "source", "reason"),
    [
        ("./none.py:graph", ECHO, "There is no file ./none.py."),
        ("./agent.ts:graph", ECHO, "There is no file ./agent.ts."),
        ("./langgraph.json:graph", ECHO, "./langgraph.json is not a Python file."),
        ("./agent.py:grpah", ECHO, "./agent.py has no attribute grpah."),
        ("./agent.py:graph.none", ECHO, "./agent.py has no attribute graph.none."),
        (
            "no.such.module:graph",
            ECHO,
            "It could not be imported: ModuleNotFoundError: No module named 'no'.",
        ),
        ("./agent.py:graph", "graph = 1", "graph is of type int, but it must be a compiled graph"),
        ("./agent.py:graph", "class graph: pass", "graph is of type type, but it must be a compiled graph"),
        (
            "./agent.py:graph",
            "def graph(): return 3",
            "what graph returned is of type int, but it must be a compiled graph",
        ),
        ("./agent.py:graph", "def graph(a, b): ...", "graph takes 2 arguments, but it must be"),
        ("./agent.py:graph", "import nothing_such\n", "No module named 'nothing_such' (agent.py, line 1)."),
        ("./agent.py:graph", "\n\nraise ValueError('no\\nkey')", "ValueError: no key (agent.py, line 3)."),
        ("./agent.py:graph", "def (", "SyntaxError: invalid syntax"),
        ("./agent.py:graph", "import sys\nsys.exit('bye')", "SystemExit: bye (agent.py, line 2)."),
        (
            "./agent.py:graph",
            "def graph():\n    raise RuntimeError('no network')",
            "It could not be built by graph: RuntimeError: no network (agent.py, line 2).",
        ),
        (
            "./agent.py:graph",
            "from langgraph.graph import StateGraph\ngraph = StateGraph(dict)",
            "It could not be compiled: ValueError: Graph must have an entrypoint",
        ),
    ],
)
def test_each_failure_is_told_in_one_clear_line(
    project: Project, target: str, source: str, reason: str
) -> None:
    assert reason in _failure(project({"a": target}, {"agent.py": source}))


def test_a_file_that_failed_can_be_mended_and_loaded(project: Project) -> None:
    source = project({"a": "./agent.py:graph"}, {"agent.py": "raise ValueError"})
    _failure(source)
    (source.parent / "agent.py").write_text(ECHO)
    assert isinstance(_load(source), Pregel)


def test_a_failure_mentions_an_env_that_is_not_read(project: Project) -> None:
    files = {"agent.py": "import os\nos.environ['NO_SUCH_KEY']"}
    source = project({"a": "./agent.py:graph"}, files, env=".env")
    assert 'The file\'s "env" is not read; set such variables for the worker.' in _failure(source)
