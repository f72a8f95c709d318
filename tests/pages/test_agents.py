"""The agents page: what can run, what cannot and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from agents_runtime.canonical import encode
from agents_runtime.models import AgentSpec, RegistrationProblem
from reviewer.accounts.models import User
from reviewer.web.agents import tools_of
from tests.cast import Cast

ClientOf = Callable[[User], Client]


@pytest.fixture(autouse=True)
def no_agents(db: None) -> None:
    """Agents that other tests registered for the session are not on these pages."""
    AgentSpec.objects.all().delete()


def test_the_page_names_each_file_that_does_not_load_and_why_while_the_others_still_start(
    cast: Cast, client_of: ClientOf
) -> None:
    AgentSpec.objects.create(name="good", source="a/langgraph.json", entry="./good.py:graph")
    AgentSpec.objects.create(
        name="bad",
        source="b/langgraph.json",
        entry="./bad.py:graph",
        import_error="ImportError: cannot import <x>",
    )
    RegistrationProblem.objects.create(
        source="c/langgraph.json", entry="twice", message="Two agents are called good."
    )
    page = client_of(cast.developer).get("/agents/").content.decode()
    assert "/runs/start/good/" in page
    assert "/runs/start/bad/" not in page
    assert "./bad.py:graph does not load" in page
    assert "b/langgraph.json" in page
    assert page.count("Nodes") == 1
    assert "ImportError: cannot import &lt;x&gt;" in page
    assert "Two agents are called good." in page


def test_those_who_start_no_runs_get_no_start_button(cast: Cast, client_of: ClientOf) -> None:
    AgentSpec.objects.create(name="good", source="a/langgraph.json", entry="./good.py:graph")
    assert "/runs/start/" not in client_of(cast.reviewer).get("/agents/").content.decode()


def test_gated_tools_come_first_and_a_gate_on_an_unknown_tool_is_shown_too(cast: Cast) -> None:
    spec = AgentSpec(
        tools=encode({"read": {"description": "Reads"}, "wipe": {"description": "Wipes"}}),
        gates=encode(
            {
                "wipe": {"decisions": ["approve", "reject"], "conditional": False},
                "ghost": {"conditional": True},
            }
        ),
    )
    tools = tools_of(spec)
    assert [tool.name for tool in tools] == ["ghost", "wipe", "read"]
    assert [str(decision) for decision in tools[1].decisions] == ["Approve", "Reject"]
    assert tools[0].is_conditional
    assert not tools[2].is_gated
