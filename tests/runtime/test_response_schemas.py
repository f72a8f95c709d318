"""Kept response schemas: what is kept checks, tells and shows an answer as what the library makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import human_in_the_loop as library
from langchain.agents.middleware.human_in_the_loop import DecisionType
from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agents_runtime.gate import Gate
from agents_runtime.response_schemas import keep_response_schemas
from tests.runtime.driving import APPROVE, answer, call, pending, script, start

DECISIONS: tuple[DecisionType, ...] = ("approve", "edit", "reject", "respond")


class Order(BaseModel):
    """What is ordered."""

    item: str = Field(min_length=1)
    amount: int = Field(ge=1, le=9)


@tool(args_schema=Order)
def order(item: str, amount: int) -> str:
    """Order something."""
    return f"{amount} of {item}"


@tool
def note(text: str, urgent: bool = False) -> str:
    """Write a note."""
    return text


def by_dict(properties: dict[str, Any]) -> BaseTool:
    schema = {"title": "remote", "type": "object", "properties": properties, "required": list(properties)}
    return StructuredTool(name="remote", description="Far away.", args_schema=schema, func=print)


TOOLS: list[BaseTool | None] = [order, note, by_dict({"x": {"type": "integer"}}), None]
# In one order: Python takes unions of the same types for the same one, in whichever order it met them first.
ALLOWED = st.sets(st.sampled_from(DECISIONS), min_size=1).map(lambda some: sorted(some, key=DECISIONS.index))
ANSWERS = st.one_of(
    st.none() | st.integers() | st.text(max_size=3),
    st.fixed_dictionaries({"type": st.sampled_from([*DECISIONS, "other"])}, optional={"message": st.text()}),
    st.fixed_dictionaries(
        {
            "type": st.just("edit"),
            "edited_action": st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["order", "note", "remote"]),
                    "args": st.dictionaries(
                        st.sampled_from(["item", "amount", "text", "urgent", "x"]),
                        st.integers(0, 12) | st.text(max_size=2) | st.booleans(),
                    ),
                }
            ),
        }
    ),
)


@contextmanager
def standing() -> Iterator[None]:
    with Gate(uuid4(), 1).standing():
        yield


def verdict(schema: Any, answer: object) -> object:
    try:
        return TypeAdapter(schema).validate_python(answer)
    except ValidationError as refused:
        return str(refused), refused.errors(include_url=False, include_context=False)


@pytest.fixture(autouse=True)
def kept() -> None:
    keep_response_schemas()


@settings(deadline=None)
@given(ALLOWED, st.sampled_from(TOOLS), ANSWERS)
def test_a_kept_schema_takes_and_refuses_what_the_librarys_does_and_in_its_words(
    allowed: list[DecisionType], of: BaseTool | None, answer: object
) -> None:
    name = of.name if of else "remote"
    theirs = library._decision_schema(allowed, name, of)
    with standing():
        ours = library._decision_schema(allowed, name, of)
    assert verdict(ours, answer) == verdict(theirs, answer)
    assert TypeAdapter(ours).json_schema() == TypeAdapter(theirs).json_schema()


def test_it_is_made_once_for_a_tool_where_a_gate_stands_and_anew_where_none_does() -> None:
    with standing():
        first = library._decision_schema(["approve", "edit"], "order", order)
        again = library._decision_schema(["approve", "edit"], "order", order)
    assert first is again
    assert library._decision_schema(["approve", "edit"], "order", order) is not first


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda: (["edit", "approve"], "order", order), id="order of decisions"),
        pytest.param(lambda: (["approve"], "order", order), id="decisions"),
        pytest.param(lambda: (["approve", "edit"], "buy", order), id="name"),
        pytest.param(lambda: (["approve", "edit"], "order", note), id="tool"),
        pytest.param(lambda: (["approve", "edit"], "order", None), id="no tool"),
    ],
)
def test_what_differs_has_a_schema_of_its_own(other: Callable[[], tuple[Any, str, Any]]) -> None:
    with standing():
        first = library._decision_schema(["approve", "edit"], "order", order)
        assert library._decision_schema(*other()) is not first


def test_a_tool_whose_arguments_change_is_asked_about_anew() -> None:
    properties: dict[str, Any] = {"x": {"type": "integer"}}
    remote = by_dict(properties)
    changing = StructuredTool.from_function(func=lambda item: item, name="order", description="Order.")
    with standing():
        first, theirs = (library._decision_schema(["edit"], one.name, one) for one in (remote, changing))
        properties["y"] = {"type": "string"}
        changing.args_schema = Order
        second, others = (library._decision_schema(["edit"], one.name, one) for one in (remote, changing))
    assert first is not second
    assert theirs is not others
    assert "y" in str(TypeAdapter(second).json_schema())
    assert "amount" in str(TypeAdapter(others).json_schema())
    assert (
        "y"
        not in TypeAdapter(first).json_schema()["$defs"]["EditedAction"]["properties"]["args"]["properties"]
    )


def test_where_nobody_may_edit_it_is_not_asked_what_the_tool_takes() -> None:
    class Later(BaseModel):
        x: NotYet  # type: ignore[name-defined]  # noqa: F821  nobody knows this name yet

    later = StructuredTool(name="later", description="Later.", args_schema=Later, func=print)
    with standing():
        kept_one = library._decision_schema(["approve", "reject"], "later", later)
    assert verdict(kept_one, {"type": "approve"}) == {"type": "approve"}


def test_schemas_that_differ_in_their_depths_only_are_told_apart() -> None:
    def deep(end: str) -> BaseTool:
        schema: dict[str, Any] = {"type": end}
        for _ in range(100):
            schema = {"type": "object", "properties": {"x": schema}}
        return by_dict({"x": schema})

    with standing():
        one, another = (
            library._decision_schema(["edit"], "deep", deep(end)) for end in ("string", "integer")
        )
    assert one is not another


def test_to_keep_them_twice_changes_nothing() -> None:
    before = library._decision_schema
    keep_response_schemas()
    assert library._decision_schema is before


@pytest.mark.usefixtures("runtime")
def test_the_library_asks_for_a_schema_where_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract: per-call mode gets its schemas by this name, in a pause and after it, with a gate."""
    kept_ones = list[object]()
    keeps = library._decision_schema

    def noted(*given: Any) -> Any:
        kept_ones.append(keeps(*given))
        return kept_ones[-1]

    monkeypatch.setattr(library, "_decision_schema", noted)
    for _ in range(2):
        run = start("t-per-call", script([call("pay", to="Ada", amount=5)]))
        assert answer(pending(run), APPROVE).status == "finished"
    assert len(kept_ones) == 4
    assert len(set(map(id, kept_ones))) == 1
