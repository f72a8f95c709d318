"""Deep Agents: their gates for each main agent and subagent, as the library makes them and as they should be.

Tasks of subagents are scripts too: a call of ``task`` with a script as its description plays it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.middleware._fs_interrupt import _build_interrupt_on_from_permissions
from langchain.agents.middleware import HumanInTheLoopMiddleware

from tests.agents.playbook import Playbook
from tests.agents.tools import GATED, apay, drop, look, pay

TOOLS = [pay, drop, look]
SECRETS = [FilesystemPermission(operations=["write"], paths=["/secrets/**"], mode="interrupt")]
GENERAL_PURPOSE = {"name": "general-purpose", "description": "Do anything.", "system_prompt": "Do it."}


def _per_call(gates: Any = GATED) -> HumanInTheLoopMiddleware[Any, Any, Any]:
    return HumanInTheLoopMiddleware(interrupt_on=gates, interrupt_mode="per_call")


def _asking_per_call(tools: Sequence[Any], gates: Any = GATED) -> Any:
    """Gate the main agent and the general-purpose subagent alike: the library gates one of them at best."""
    helper: Any = {**GENERAL_PURPOSE, "interrupt_on": {}, "middleware": [_per_call(gates)]}
    return create_deep_agent(Playbook(), tools, middleware=[_per_call(gates)], subagents=[helper])


def batched() -> Any:
    """Ask for a turn's calls together, in the general-purpose subagent too; the clerk has its own gates."""
    clerk: Any = {
        "name": "clerk",
        "description": "Keep the files.",
        "system_prompt": "Keep them.",
        "interrupt_on": {"drop": {"allowed_decisions": ["approve", "reject"]}},
    }
    gates: Any = {"pay": GATED["pay"]}
    return create_deep_agent(Playbook(), TOOLS, interrupt_on=gates, subagents=[clerk])


def per_call() -> Any:
    """Ask for each call, whoever makes it."""
    return _asking_per_call(TOOLS)


def on_a_loop() -> Any:
    """Ask for each call of a tool that is async only."""
    return _asking_per_call([apay, look], {"apay": {"allowed_decisions": ["approve", "edit", "reject"]}})


def half_gated() -> Any:
    """Gate the main agent only, as the library's documentation of middleware invites to."""
    return create_deep_agent(Playbook(), TOOLS, middleware=[_per_call()])


def permissions() -> Any:
    """Ask before a file among the secrets is written."""
    return create_deep_agent(Playbook(), TOOLS, permissions=SECRETS)


def permissions_per_call() -> Any:
    """Ask for each call, with the gates that permissions make merged in: the library would drop them."""
    gates: Any = {**GATED, **_build_interrupt_on_from_permissions(SECRETS)}
    return create_deep_agent(
        Playbook(),
        TOOLS,
        permissions=SECRETS,
        middleware=[_per_call(gates)],
        subagents=[
            {**GENERAL_PURPOSE, "permissions": [], "interrupt_on": {}, "middleware": [_per_call(gates)]}
        ],
    )
