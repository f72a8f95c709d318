"""The agents that workers have registered, and what could not be registered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents_runtime.canonical import Json, decode
from agents_runtime.models import AgentSpec
from reviewer import queries
from reviewer.accounts import permissions
from reviewer.web.requests import person

DECISION_WORDS: dict[str, str | Promise] = {
    "approve": _("Approve"),
    "edit": _("Edit"),
    "reject": _("Reject"),
    "respond": _("Respond"),
}


@dataclass(frozen=True)
class Tool:
    """One tool of an agent; ``decisions`` are what a reviewer may choose where it is gated."""

    name: str
    description: str
    is_gated: bool
    is_conditional: bool
    decisions: Sequence[str | Promise]


@dataclass(frozen=True)
class AgentRow:
    """An agent as the page shows it."""

    spec: AgentSpec
    tools: Sequence[Tool]

    @property
    def gated(self) -> Sequence[Tool]:
        """The tools that wait for a decision."""
        return [tool for tool in self.tools if tool.is_gated]


@require_GET
@never_cache
def agents(request: HttpRequest) -> HttpResponse:
    """List the agents, those that cannot run and why, and what could not be registered."""
    reader = person(request)
    context = {
        "agents": [AgentRow(spec, tools_of(spec)) for spec in queries.agents(reader)],
        "problems": queries.registration_problems(reader),
        "may_start": permissions.can_start_runs(reader),
    }
    return render(request, "agents/agents.html", context)


def tools_of(spec: AgentSpec) -> list[Tool]:
    """Return the agent's tools, gated ones first; a gate without a known tool is a tool, too."""
    tools, gates = _mapping(decode(spec.tools)), _mapping(decode(spec.gates))
    names = sorted({*tools, *gates}, key=lambda name: (name not in gates, name))
    return [_tool(name, _mapping(tools.get(name)), gates.get(name)) for name in names]


def _tool(name: str, tool: dict[str, Json], gate: Json) -> Tool:
    decisions = _mapping(gate).get("decisions") or ()
    return Tool(
        name=name,
        description=str(tool.get("description") or ""),
        is_gated=gate is not None,
        is_conditional=bool(_mapping(gate).get("conditional")),
        decisions=[DECISION_WORDS.get(str(decision), str(decision)) for decision in decisions],
    )


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
