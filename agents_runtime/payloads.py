"""The only room that knows the shapes of interrupts: what was raised -> requests, answers -> resume value.

Four shapes are known: per-call tool approval, a batch of actions, the legacy request, and a breakpoint. Any
other value is a question, shown raw and answered by its own schema, or by any JSON where it has none. Values
of other shapes that look alike are read alike: an agent may build these requests by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents_runtime.canonical import Json, Plain, decode, same, to_json
from agents_runtime.decision_schemas import decision_schema
from agents_runtime.desk import ReviewRequest
from agents_runtime.errors import Problem
from agents_runtime.messages import text_of, tool_calls_of
from agents_runtime.models import AgentSpec, Pause
from agents_runtime.thread_state import RaisedInterrupt

APPROVAL_PREFIX = "Tool execution requires approval"
DECISIONS = ("approve", "edit", "reject", "respond")
REVIEWED_CONTEXT = "countersign"
UNKNOWN_DECISIONS = ("approve", "reject")
HINTS = ("risk", "queue", "expires_after", "on_expiry")
LEGACY_FLAGS = (
    ("allow_accept", "approve"),
    ("allow_edit", "edit"),
    ("allow_ignore", "reject"),
    ("allow_respond", "respond"),
)


@dataclass(frozen=True)
class Asked:
    """An interrupt read: its shape, the calls it is about, and one request for each position."""

    kind: str
    requests: tuple[ReviewRequest, ...]
    place: int | None = None

    @property
    def calls(self) -> list[Json]:
        """What may be allowed by position, for the ledger; empty for anything but tool calls."""
        return [
            {"tool": request.tool, "tool_call_id": request.tool_call_id, "arguments": request.arguments}
            for request in self.requests
            if request.kind == "tool_call"
        ]

    def after_refusal(self, answers: Sequence[Json], problems: tuple[Problem, ...]) -> Asked:
        """Return the same questions, each with the answer that was refused and why."""
        again = (
            replace(request, refused_answer=answer, refusal=problems)
            for request, answer in zip(self.requests, answers, strict=True)
        )
        return replace(self, requests=tuple(again))


def read(raised: RaisedInterrupt, spec: AgentSpec, messages: Sequence[object]) -> Asked:
    """Return what an interrupt asks. ``messages`` are the root graph's, to find the agent's own words."""
    value = raised.value.value if isinstance(raised.value, Plain) else raised.value
    tools = _Tools(decode(spec.tools), messages, decode(spec.gates))
    if _is_per_call(value):
        return _read_per_call(value, raised.response_schema, tools)
    if _is_batch(value):
        return _read_batch(value, tools)
    if _is_legacy(value):
        return _read_legacy(value if isinstance(value, list) else [value], tools)
    schema = True if raised.response_schema is None else to_json(raised.response_schema)
    request = ReviewRequest(
        position=0, kind="question", arguments=to_json(raised.value), response_schema=schema
    )
    return Asked(Pause.Kind.QUESTION, (request,))


def read_breakpoint(next_nodes: Sequence[str]) -> Asked:
    """Return the one request of a static breakpoint: go on."""
    request = ReviewRequest(
        position=0,
        kind="continue",
        arguments={"next": list(next_nodes)},
        response_schema={"const": "continue", "title": "Continue"},
    )
    return Asked(Pause.Kind.STATIC, (request,))


def resume_value(pause: Pause) -> Json:
    """Return what the library wants for the answers of a pause."""
    answers = pause.answer_list
    if pause.kind == Pause.Kind.BATCHED:
        return {"decisions": answers}
    if pause.kind == Pause.Kind.LEGACY:
        return [_legacy_answer(answer) for answer in answers]
    return answers[0]


def allowed_arguments(call: Mapping[str, Json], answer: Json) -> tuple[bool, Json]:
    """Return whether an answer lets a call run, and with which arguments."""
    if not isinstance(answer, dict):
        return False, None
    if answer.get("type") == "approve":
        return True, call["arguments"]
    edited = answer.get("edited_action")
    if answer.get("type") == "edit" and isinstance(edited, dict) and edited.get("name") == call["tool"]:
        return True, edited.get("args")
    return False, None


class _Tools:
    """What is known of the agent's tools, and which of the model's calls each request is about."""

    def __init__(
        self, tools: Mapping[str, Json], messages: Sequence[object], gates: Mapping[str, Json]
    ) -> None:
        self._tools = tools
        self._gates = gates
        self._calls = [
            (place, call, text_of(message))
            for message in reversed(messages)
            for place, call in enumerate(tool_calls_of(message))
        ]

    def request(self, position: int, tool: str, arguments: Json, **fields: Any) -> ReviewRequest:
        """Return a request to decide a call of ``tool``."""
        known = self._tools.get(tool) or {}
        gate = self._gates.get(tool) or {}
        return ReviewRequest(
            position=position,
            kind="tool_call",
            tool=tool,
            arguments=to_json(arguments),
            title_template=known.get("title") or "",
            args_schema=known.get("args_schema"),
            **{hint: gate[hint] for hint in HINTS if hint in gate},
            **fields,
        )

    def schema(self, tool: str, decisions: Sequence[str]) -> Json:
        """Return the schema of a decision on ``tool``, for shapes that bring none."""
        return decision_schema(tool, decisions, (self._tools.get(tool) or {}).get("args_schema"))

    def by_id(self, tool_call_id: str) -> tuple[int | None, str]:
        """Return the place of a call within its turn, if it is known, and the agent's words around it."""
        found = (entry for entry in self._calls if entry[1].get("id") == tool_call_id)
        place, _, said = next(found, (None, {}, ""))
        return place, said

    def in_order(self, actions: Sequence[tuple[str, Json]]) -> Iterator[tuple[int, str, str]]:
        """Yield (place, tool_call_id, words) for actions that name no call: the first alike, each once."""
        left = list(self._calls)
        for tool, arguments in actions:
            alike = (
                entry
                for entry in left
                if entry[1].get("name") == tool and same(entry[1].get("args"), arguments)
            )
            found = next(alike, None)
            if found is None:
                yield 0, "", ""
                continue
            left.remove(found)
            yield found[0], str(found[1].get("id") or ""), found[2]


def _is_per_call(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") == "tool_approval"
        and isinstance(value.get("name"), str)
        and isinstance(value.get("args"), dict)
    )


def _is_batch(value: object) -> bool:
    actions = value.get("action_requests") if isinstance(value, dict) else None
    return isinstance(actions, list) and bool(actions) and all(_is_action(action) for action in actions)


def _is_action(action: object) -> bool:
    return (
        isinstance(action, dict) and isinstance(action.get("name"), str) and isinstance(_args(action), dict)
    )


def _is_legacy(value: object) -> bool:
    found = value if isinstance(value, list) else [value]
    return bool(found) and all(
        isinstance(item, dict)
        and isinstance(item.get("config"), dict)
        and isinstance(item.get("action_request"), dict)
        and isinstance(item["action_request"].get("action"), str)
        for item in found
    )


def _read_per_call(value: Any, schema: Json, tools: _Tools) -> Asked:
    tool_call_id = str(value.get("tool_call_id") or "")
    place, said = tools.by_id(tool_call_id)
    place, _, said = _as_told(value, (place, tool_call_id, said))
    known_schema = tools.schema(value["name"], UNKNOWN_DECISIONS) if schema is None else to_json(schema)
    request = tools.request(
        0,
        value["name"],
        value["args"],
        tool_call_id=tool_call_id,
        description=_description(value),
        said=said,
        response_schema=known_schema,
    )
    return Asked(Pause.Kind.PER_CALL, (request,), place)


def _read_batch(value: Any, tools: _Tools) -> Asked:
    actions = value["action_requests"]
    allowed = _allowed_decisions(value.get("review_configs"))
    found = tools.in_order([(action["name"], _args(action)) for action in actions])
    origins = [_as_told(action, origin) for action, origin in zip(actions, found, strict=True)]
    requests = [
        tools.request(
            position,
            action["name"],
            _args(action),
            tool_call_id=tool_call_id,
            description=_description(action),
            said=said,
            response_schema=tools.schema(action["name"], allowed.get(action["name"]) or UNKNOWN_DECISIONS),
        )
        for position, (action, (_, tool_call_id, said)) in enumerate(zip(actions, origins, strict=True))
    ]
    return Asked(Pause.Kind.BATCHED, tuple(requests))


def _as_told(action: Mapping[str, Any], found: tuple[int | None, str, str]) -> tuple[int | None, str, str]:
    """Return (place, tool_call_id, words) of a call as ``reviewed`` saw them when it asked, else as found."""
    told = action.get(REVIEWED_CONTEXT)
    if not isinstance(told, dict):
        return found
    place = told.get("place")
    return (
        place if isinstance(place, int) and place >= 0 else found[0],
        str(told.get("tool_call_id") or found[1]),
        str(told.get("said") or found[2]),
    )


def _allowed_decisions(reviews: Any) -> dict[str, list[str]]:
    """Return what each tool's reviewer may decide, as far as it is told in words that mean something."""
    found = [review for review in reviews if isinstance(review, dict)] if isinstance(reviews, list) else []
    return {
        str(review.get("action_name")): [
            decision for decision in DECISIONS if decision in _list(review.get("allowed_decisions"))
        ]
        for review in found
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_legacy(items: Sequence[Any], tools: _Tools) -> Asked:
    requests = []
    for position, item in enumerate(items):
        tool = item["action_request"]["action"]
        decisions = [decision for flag, decision in LEGACY_FLAGS if item["config"].get(flag)]
        request = tools.request(
            position,
            tool,
            item["action_request"].get("args"),
            description=str(item.get("description") or ""),
            response_schema=tools.schema(tool, decisions or ["respond"]),
        )
        requests.append(request)
    return Asked(Pause.Kind.LEGACY, tuple(requests))


def _legacy_answer(answer: Any) -> Json:
    match answer["type"]:
        case "approve":
            return {"type": "accept", "args": None}
        case "edit":
            edited = answer["edited_action"]
            return {"type": "edit", "args": {"action": edited["name"], "args": edited["args"]}}
        case "respond":
            return {"type": "response", "args": answer["message"]}
        case _:
            return {"type": "ignore", "args": answer.get("message")}


def _args(action: Mapping[str, Any]) -> Any:
    """Both spellings are in use."""
    return action.get("args", action.get("arguments"))


def _description(action: Mapping[str, Any]) -> str:
    """Return the author's own description; the library's default only repeats tool and arguments."""
    description = str(action.get("description") or "")
    default = f"{APPROVAL_PREFIX}\n\nTool: {action['name']}\nArgs: {_args(action)}"
    return "" if description == default else description
