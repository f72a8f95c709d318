"""Policies for agent authors: tiers of risk -> the middleware that asks people before tools run.

    middleware = review_policy(
        [look_up, pay, archive],
        high=["pay"],
        low=["look_up"],
        medium=["archive"],
        rules={"pay": ReviewRule(queue="payments", expires_after=timedelta(hours=4), on_expiry="reject")},
    )
    agent = create_agent(model, tools, middleware=middleware)

The tiers, and why they are what they are:

* ``high``: approve, edit, reject. What harms when it is wrong: a person may also put it right.
* ``medium``: approve, reject. An edit of something that can be repeated is slower than asking again.
* ``low``: nobody is asked. Reading, and what is undone at no cost; cards for it would teach people to click.
* ``ask``: respond. The tool is a question; the person's answer is its result, and its code never runs.

Each tool of the agent stands in exactly one tier, so that none is forgotten.

Lives here: what an author writes, and refusing what would gate nothing. Does not live here: the middleware
itself (``reviewed``), and the organisation's own policies, which go before an author's hints.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import CodeType
from typing import Any

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, InterruptOnConfig
from langchain_core.tools import BaseTool

from agents_runtime.listings import DECISIONS, Hints, problem_with
from agents_runtime.reviewed import ReviewedTools

Tool = BaseTool | Callable[..., Any] | str
Middleware = AgentMiddleware[Any, Any, Any]

TIERS: Mapping[str, tuple[str, ...]] = {
    "high": ("approve", "edit", "reject"),
    "medium": ("approve", "reject"),
    "low": (),
    "ask": ("respond",),
}
MODES = ("per_call", "batched")
RISK_OF_A_QUESTION = "low"
# What ``when`` reads of a request that only exists where each call asks for itself.
ONLY_PER_CALL = frozenset({"tool", "runtime"})
DEEP_AGENTS_HELPER = "general-purpose"


class PolicyError(ValueError):
    """A policy that would not do what it says; the text is for the agent's author."""


@dataclass(frozen=True)
class ReviewRule:
    """What is special about one tool.

    ``decisions``: instead of its tier's. ``when``: a pure function of the call's arguments that says whether
    to ask; it runs again when the run resumes. ``description``: for the card, text or a function of
    (tool_call, state, runtime). ``risk`` (low | medium | high | critical) instead of its tier's, ``queue``
    (its short name), ``expires_after`` and ``on_expiry`` (hold | reject) are hints: policies of the
    organisation go first. ``harmless``: errors after which nothing has happened, such as a refused
    connection: a retry in ``middleware`` tries again by itself then. Any other error waits for a person.
    """

    decisions: Sequence[str] = ()
    when: Callable[[Any], bool] | None = None
    description: str | Callable[..., str] = ""
    risk: str = ""
    queue: str = ""
    expires_after: timedelta | None = None
    on_expiry: str = ""
    harmless: tuple[type[Exception], ...] = ()


def review_policy(
    tools: Iterable[Tool],
    *,
    high: Iterable[Tool] = (),
    medium: Iterable[Tool] = (),
    low: Iterable[Tool] = (),
    ask: Iterable[Tool] = (),
    rules: Mapping[str, ReviewRule] | None = None,
    middleware: Sequence[Middleware] = (),
    interrupt_mode: str = "per_call",
    gates_nothing: bool = False,
) -> list[Middleware]:
    """Return the middleware list of an agent: its review first, then the agent's own ``middleware``.

    ``tools`` are all tools of the agent, those of its middleware by name; each stands in one tier. The review
    is outermost, so that a retry in ``middleware`` repeats the tool and never the question. Raises
    ``PolicyError`` where the policy would leave a tool ungated by mistake; an agent without any gate says
    ``gates_nothing=True``.
    """
    tiers = _tiers({"high": high, "medium": medium, "low": low, "ask": ask})
    known = {_name(tool): tool for tool in tools}
    given = dict(rules or {})
    _check_names(known, tiers, given)
    if interrupt_mode not in MODES:
        raise PolicyError(f"The interrupt mode is {' or '.join(MODES)}, not {interrupt_mode!r}.")
    gated = {name: tier for name, tier in tiers.items() if tier != "low"}
    _check_gating(gated, gates_nothing=gates_nothing, middleware=middleware)
    for name, tier in tiers.items():
        _check_tool(known[name], tier)
        _check_rule(name, tier, given.get(name, ReviewRule()), interrupt_mode)
    if not gated:
        return list(middleware)
    review = ReviewedTools(
        {name: _config(tier, given.get(name, ReviewRule())) for name, tier in gated.items()},
        interrupt_mode="batched" if interrupt_mode == "batched" else "per_call",
        hints={name: _hints(tier, given.get(name, ReviewRule())) for name, tier in gated.items()},
        harmless={name: rule.harmless for name, rule in given.items() if rule.harmless},
    )
    return [review, *middleware]


def for_deep_agent(
    policy: Sequence[Middleware],
    *,
    subagents: Sequence[Mapping[str, Any]] = (),
    permissions: Sequence[Any] = (),
    backend: Any = None,
) -> dict[str, Any]:
    """Return the arguments by which ``create_deep_agent`` gates every agent that it builds.

        create_deep_agent(model, tools, **for_deep_agent(policy, permissions=rules))

    Left to itself the library gates the main agent only, or only in batches, and drops the gates of
    ``permissions`` where the review takes the place of its own middleware. So: the general-purpose subagent
    is named, every declared subagent gets the review, and permissions that ask become gates of the review. A
    subagent that is compiled already must be built with the policy itself; the *Agents* page tells if a tool
    has a gap.
    """
    review = next((one for one in policy if isinstance(one, ReviewedTools)), None)
    if review is None:
        raise PolicyError("This policy gates nothing: a deep agent needs no help with that.")
    specs = [dict(spec) for spec in subagents]
    if all(spec.get("name") != DEEP_AGENTS_HELPER for spec in specs):
        specs.insert(0, dict(_deepagents("middleware.subagents").GENERAL_PURPOSE_SUBAGENT))
    main = _with_permissions(review, permissions, backend)
    return {
        "middleware": [main if one is review else one for one in policy],
        "subagents": [_gated_subagent(spec, review, permissions, backend) for spec in specs],
        "permissions": _without_asking(permissions) or None,
        "backend": backend,
    }


def _tiers(listed: Mapping[str, Iterable[Tool]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for tier, tools in listed.items():
        if isinstance(tools, str):
            raise PolicyError(f"{tier} is a list of tools, not one text.")
        for name in map(_name, tools):
            if name in found:
                raise PolicyError(f"{name} is listed twice: under {found[name]} and under {tier}.")
            found[name] = tier
    return found


def _name(tool: Tool) -> str:
    name = tool if isinstance(tool, str) else getattr(tool, "name", getattr(tool, "__name__", ""))
    if not isinstance(name, str) or not name.strip():
        raise PolicyError(f"{tool!r} is no tool: a tool, a function or a tool's name is needed.")
    return name


def _check_names(
    known: Mapping[str, Tool], tiers: Mapping[str, str], rules: Mapping[str, ReviewRule]
) -> None:
    if not known:
        raise PolicyError("The policy knows no tools: give it the agent's.")
    for name in (*tiers, *rules):
        if name not in known:
            raise PolicyError(f"{name} is no tool of this agent, which has {', '.join(sorted(known))}.")
    if missing := sorted(known.keys() - tiers.keys()):
        raise PolicyError(
            f"{', '.join(missing)} stands in no tier. Put it under low if nobody need be asked about it."
        )


def _check_gating(gated: Mapping[str, str], *, gates_nothing: bool, middleware: Sequence[Middleware]) -> None:
    if not gated and not gates_nothing:
        raise PolicyError("Every tool is low, so nobody is ever asked. Say gates_nothing=True if so meant.")
    if gated and gates_nothing:
        raise PolicyError(f"gates_nothing is said, but {', '.join(gated)} is gated.")
    for other in middleware:
        if isinstance(other, HumanInTheLoopMiddleware):
            raise PolicyError(f"{type(other).__name__} gates tools, too: say it all in the policy.")


def _check_tool(tool: Tool, tier: str) -> None:
    """Refuse a tier that what the tool says of itself contradicts; tools of MCP servers say such things."""
    hints = (tool.metadata or {}) if isinstance(tool, BaseTool) else {}
    writes = hints.get("destructiveHint") is True or hints.get("readOnlyHint") is False
    if tier == "ask" and writes:
        raise PolicyError(
            f"{_name(tool)} changes something: under ask its code never runs, and it would not."
        )
    if tier == "low" and hints.get("destructiveHint") is True:
        raise PolicyError(f"{_name(tool)} calls itself destructive: somebody must be asked about it.")


def _check_rule(name: str, tier: str, rule: ReviewRule, mode: str) -> None:
    if tier == "low" and rule != ReviewRule():
        raise PolicyError(f"{name} is low, so nobody is asked and its rule means nothing.")
    _check_decisions(name, tier, rule)
    _check_condition(name, tier, rule, mode)
    for error in rule.harmless:
        if not (isinstance(error, type) and issubclass(error, Exception)) or error is Exception:
            raise PolicyError(f"{name}: a harmless error is one class of errors, not {error!r}.")
    if rule.expires_after is not None and rule.expires_after.total_seconds() < 1:
        raise PolicyError(f"{name}: a request needs at least a second until it expires.")
    if problem := problem_with(_hints(tier, rule)):
        raise PolicyError(f"{name}: {problem}")
    if rule.on_expiry == "reject" and "reject" not in (tuple(rule.decisions) or TIERS[tier]):
        raise PolicyError(f"{name} is rejected on expiry, but reject is none of its decisions.")


def _check_decisions(name: str, tier: str, rule: ReviewRule) -> None:
    if isinstance(rule.decisions, str):
        raise PolicyError(f"{name}: its decisions are a list.")
    for decision in rule.decisions:
        if decision not in DECISIONS:
            raise PolicyError(f"{name}: a decision is one of {', '.join(DECISIONS)}, not {decision!r}.")
    if tier == "ask" and {"approve", "edit"} & set(rule.decisions):
        raise PolicyError(f"{name} is a question: an approval would run its code. Put it under high.")


def _check_condition(name: str, tier: str, rule: ReviewRule, mode: str) -> None:
    if rule.when is None:
        return
    if tier == "ask":
        raise PolicyError(f"{name} is a question: with a condition its code would run unasked.")
    if not callable(rule.when) or inspect.iscoroutinefunction(rule.when):
        raise PolicyError(f"{name}: its condition is a plain function of the request.")
    try:
        inspect.signature(rule.when).bind(object())
    except TypeError:
        raise PolicyError(f"{name}: its condition takes one argument, the request.") from None
    except ValueError:  # a callable whose signature cannot be seen
        return
    code = getattr(rule.when, "__code__", None)
    if mode == "batched" and isinstance(code, CodeType) and ONLY_PER_CALL & set(code.co_names):
        raise PolicyError(
            f"{name}: its condition reads the tool or its runtime, which batches do not have. Ask per call."
        )


def _config(tier: str, rule: ReviewRule) -> InterruptOnConfig:
    config: Any = {"allowed_decisions": list(rule.decisions or TIERS[tier])}
    if rule.when is not None:
        config["when"] = rule.when
    if rule.description:
        config["description"] = rule.description
    checked: InterruptOnConfig = config
    return checked


def _hints(tier: str, rule: ReviewRule) -> Hints:
    seconds = None if rule.expires_after is None else int(rule.expires_after.total_seconds())
    risk = rule.risk or (RISK_OF_A_QUESTION if tier == "ask" else tier)
    return Hints(risk=risk, queue=rule.queue, expires_after=seconds, on_expiry=rule.on_expiry)


def _gated_subagent(
    spec: Mapping[str, Any], review: ReviewedTools, permissions: Sequence[Any], backend: Any
) -> dict[str, Any]:
    """Return the spec with the review in it; one that runs elsewhere, or is compiled, stays as it is."""
    if "graph_id" in spec or "runnable" in spec:
        return dict(spec)
    own = spec.get("middleware") or ()
    if spec.get("interrupt_on") or any(isinstance(one, HumanInTheLoopMiddleware) for one in own):
        raise PolicyError(f"The subagent {spec.get('name')} has gates of its own: say them in the policy.")
    rules = spec.get("permissions", permissions) or ()
    return {
        **spec,
        "interrupt_on": {},
        "middleware": [_with_permissions(review, rules, backend), *own],
        "permissions": _without_asking(rules),
    }


def _with_permissions(review: ReviewedTools, permissions: Sequence[Any], backend: Any) -> ReviewedTools:
    """Add the gates that permissions make; what the policy says of a tool goes first, as in the library."""
    if all(rule.mode != "interrupt" for rule in permissions):
        return review
    build = _deepagents("middleware._fs_interrupt")._build_interrupt_on_from_permissions  # noqa: SLF001
    return ReviewedTools(
        {**build(list(permissions), backend), **review.interrupt_on},
        interrupt_mode=review.interrupt_mode,
        hints=review.hints,
        harmless=review.harmless,
    )


def _without_asking(permissions: Sequence[Any]) -> list[Any]:
    """Let through what the review asks about, in the same order: the first rule that matches counts."""
    return [replace(rule, mode="allow") if rule.mode == "interrupt" else rule for rule in permissions]


def _deepagents(module: str) -> Any:
    """Deep Agents is none of our dependencies: who calls this has it."""
    return importlib.import_module(f"deepagents.{module}")
