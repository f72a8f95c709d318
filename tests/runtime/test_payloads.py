"""Reading interrupts of every shape, and turning answers into what the library wants."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from agents_runtime.canonical import Json, encode
from agents_runtime.decision_schemas import decision_schema
from agents_runtime.errors import Problem
from agents_runtime.models import AgentSpec, Pause
from agents_runtime.payloads import Asked, allowed_arguments, read, resume_value
from agents_runtime.refusals import pointer
from agents_runtime.thread_state import RaisedInterrupt

ARGS = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "integer"}}}
SPEC = AgentSpec(
    tools=encode({"act": {"title": "Act on {x}", "args_schema": ARGS, "description": "", "gated": True}})
)
TURN = [
    HumanMessage("hi"),
    AIMessage(
        [{"type": "text", "text": "Both "}, {"type": "text", "text": "now."}],
        tool_calls=[
            {"name": "look", "args": {}, "id": "c0"},
            {"name": "act", "args": {"x": 1}, "id": "c1"},
            {"name": "act", "args": {"x": 1}, "id": "c2"},
        ],
    ),
]


def asked(value: object, schema: Json = None) -> Asked:
    return read(RaisedInterrupt("0" * 32, value, schema, "tools:1"), SPEC, TURN)


def test_a_call_brings_its_title_its_schema_its_place_and_the_agents_words() -> None:
    value = {
        "type": "tool_approval",
        "name": "act",
        "args": {"x": 1},
        "tool_call_id": "c2",
        "description": "Mind!",
    }
    found = asked(value, {"type": "object"})
    (request,) = found.requests
    assert (found.kind, found.place) == ("per_call", 2)
    assert (request.kind, request.tool, request.tool_call_id) == ("tool_call", "act", "c2")
    assert (request.title_template, request.args_schema, request.said) == ("Act on {x}", ARGS, "Both now.")
    assert (request.description, request.response_schema) == ("Mind!", {"type": "object"})
    assert found.calls == [{"tool": "act", "tool_call_id": "c2", "arguments": {"x": 1}}]


def test_the_librarys_default_description_is_left_out() -> None:
    default = "Tool execution requires approval\n\nTool: act\nArgs: {'x': 1}"
    value = {
        "type": "tool_approval",
        "name": "act",
        "args": {"x": 1},
        "tool_call_id": "c1",
        "description": default,
    }
    assert asked(value, True).requests[0].description == ""


@pytest.mark.parametrize("spelling", ["args", "arguments"])
def test_a_batch_finds_each_call_once_in_either_spelling(spelling: str) -> None:
    action = {"name": "act", spelling: {"x": 1}}
    reviews = [{"action_name": "act", "allowed_decisions": ["approve", "edit"]}]
    found = asked({"action_requests": [action, action], "review_configs": reviews})
    assert found.kind == "batched"
    assert [request.tool_call_id for request in found.requests] == ["c1", "c2"]
    schema = found.requests[0].response_schema
    assert fits(schema, {"type": "approve"})
    assert fits(schema, {"type": "edit", "edited_action": {"name": "act", "args": {"x": 2}}})
    assert not fits(schema, {"type": "edit", "edited_action": {"name": "act", "args": {"x": "two"}}})
    assert not fits(schema, {"type": "edit", "edited_action": {"name": "other", "args": {"x": 2}}})
    assert not fits(schema, {"type": "reject"})


def test_a_legacy_request_is_answered_in_its_own_words() -> None:
    config = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}
    value = [{"action_request": {"action": "act", "args": {"x": 1}}, "config": config, "description": "d"}]
    found = asked(value)
    assert found.kind == "legacy"
    given_answers: list[tuple[Json, Json]] = [
        ({"type": "approve"}, {"type": "accept", "args": None}),
        (
            {"type": "edit", "edited_action": {"name": "act", "args": {"x": 2}}},
            {"type": "edit", "args": {"action": "act", "args": {"x": 2}}},
        ),
        ({"type": "respond", "message": "m"}, {"type": "response", "args": "m"}),
        ({"type": "reject"}, {"type": "ignore", "args": None}),
    ]
    for answer, wanted in given_answers:
        assert fits(found.requests[0].response_schema, answer)
        assert resume_value(Pause(kind="legacy", answers=encode([answer]))) == [wanted]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        0,
        [],
        {},
        [{}],
        object(),
        {"type": "tool_approval"},
        {"action_requests": []},
        {"action_requests": [{"name": 1}]},
        {"action_requests": "all"},
        [{"action_request": {}, "config": {}}],
        {"type": "tool_approval", "name": "act", "args": [1]},
    ],
)
def test_what_nobody_knows_is_a_question_that_takes_any_answer(value: object) -> None:
    found = asked(value)
    assert found.kind == "question"
    (request,) = found.requests
    assert request.response_schema is True
    assert found.calls == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "args",
                    "arguments",
                    "action_requests",
                    "review_configs",
                    "config",
                    "action_request",
                    "action",
                    "tool_approval",
                    "allow_accept",
                    "action_name",
                    "allowed_decisions",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("reviews", ["abc", 3, [None], [{"action_name": ["x"], "allowed_decisions": 5}], {}])
def test_a_batch_that_tells_its_decisions_in_no_known_way_is_approved_or_rejected(reviews: Json) -> None:
    batch = {"action_requests": [{"name": "x", "args": {}}], "review_configs": reviews}
    (request,) = asked(batch).requests
    assert set(request.response_schema["$defs"]) == {"ApproveDecision", "RejectDecision"}


@given(JSON)
def test_no_value_breaks_the_reading(value: Any) -> None:
    found = asked(value)
    assert found.requests
    assert all(request.response_schema is not None for request in found.requests)
    encode([found.calls, [request.arguments for request in found.requests]])


def test_a_refused_answer_comes_back_with_what_was_wrong() -> None:
    again = asked("?").after_refusal([{"a": 1}], (Problem("/a", "no"),))
    assert again.requests[0].refused_answer == {"a": 1}
    assert again.requests[0].refusal == (Problem("/a", "no"),)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ({"type": "approve"}, (True, {"x": 1})),
        ({"type": "edit", "edited_action": {"name": "act", "args": {"x": 2}}}, (True, {"x": 2})),
        ({"type": "edit", "edited_action": {"name": "other", "args": {"x": 2}}}, (False, None)),
        ({"type": "edit"}, (False, None)),
        ({"type": "reject"}, (False, None)),
        ({"type": "respond", "message": "x"}, (False, None)),
        ("approve", (False, None)),
        (True, (False, None)),
        (None, (False, None)),
    ],
)
def test_only_an_approval_or_an_edit_of_the_same_tool_lets_a_call_run(answer: Json, wanted: object) -> None:
    assert allowed_arguments({"tool": "act", "arguments": {"x": 1}}, answer) == wanted


@pytest.mark.parametrize(
    ("path", "answer", "is_missing", "wanted"),
    [
        (
            ("edit", "edited_action", "args", "x"),
            {"type": "edit", "edited_action": {"args": {"x": 1}}},
            False,
            "/edited_action/args/x",
        ),
        (
            ("edit", "function-wrap[f()]", "edited_action", "args", "x"),
            {"type": "edit", "edited_action": {"args": {}}},
            True,
            "/edited_action/args/x",
        ),
        (("items", 1, "a/b"), {"items": [{}, {"a/b": 1}]}, False, "/items/1/a~1b"),
        (("message",), {"type": "respond"}, True, "/message"),
        (("approve",), {"type": "approve"}, False, ""),
        ((), 5, False, ""),
    ],
)
def test_a_path_of_the_check_becomes_a_pointer_into_the_answer(
    path: tuple[int | str, ...], answer: Json, *, is_missing: bool, wanted: str
) -> None:
    assert pointer(path, answer, is_missing=is_missing) == wanted


@pytest.mark.parametrize("args_schema", [None, True, {"type": "object"}, ARGS])
def test_the_schema_of_a_decision_is_valid_whatever_the_tool_declares(args_schema: Json) -> None:
    schema = decision_schema("act", ["approve", "edit", "nonsense", "approve", "respond"], args_schema)
    jsonschema_rs.meta.validate(schema)
    assert fits(schema, {"type": "respond", "message": ""})
    assert not fits(schema, {"type": "respond"})
    assert len(schema["oneOf"]) == 3


def fits(schema: Json, answer: Json) -> bool:
    return jsonschema_rs.Draft202012Validator(schema).is_valid(answer)
