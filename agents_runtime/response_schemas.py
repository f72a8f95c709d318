"""The schema of the answer to a gated call, made once for a tool.

LangChain makes it anew whenever a call asks, and once more when the call goes on with its answer: two models
of Pydantic's and a validator, which take longer than the rest of the call. It depends on the tool, its
arguments and the decisions that are allowed, so the first one does for all.

It is kept for calls before which a gate stands. Anywhere else the library is as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cached_property, lru_cache, wraps
from typing import Any

from langchain.agents.middleware import human_in_the_loop as library
from langchain_core.tools import BaseTool
from pydantic import TypeAdapter
from pydantic_core import CoreSchema

from agents_runtime.gate import standing_gate

MOST_KEPT = 256
Make = Callable[..., Any]


def keep_response_schemas() -> None:
    """Let the library's per-call mode have what is kept here; to ask twice changes nothing."""
    made = vars(library)  # it offers no other way
    if not hasattr(made["_decision_schema"], "__wrapped__"):
        made["_decision_schema"] = _kept(made["_decision_schema"])


def _kept(make: Make) -> Make:
    @lru_cache(maxsize=MOST_KEPT)
    def made_once(allowed: Sequence[str], name: str, tool: _Arguments | None) -> type:
        return _with_schema(TypeAdapter[Any](make(allowed, name, tool)).core_schema)

    @wraps(make)
    def decision_schema(allowed: Sequence[str], name: str, tool: BaseTool | None = None) -> Any:
        if standing_gate() is None:
            return make(allowed, name, tool)
        arguments = _Arguments(tool.tool_call_schema) if tool and "edit" in allowed else None
        return made_once(tuple(allowed), name, arguments)

    return decision_schema


class _Arguments:
    """What a tool takes: all that the schema of an answer asks of it. One that is a dict may be changed."""

    def __init__(self, schema: Any) -> None:
        self._key = repr(schema) if isinstance(schema, dict) else schema
        self._schema = schema

    @cached_property
    def tool_call_schema(self) -> Any:
        return deepcopy(self._schema) if isinstance(self._schema, dict) else self._schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arguments) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _with_schema(schema: CoreSchema) -> type:
    """Return a type of which Pydantic need not find out its schema."""

    class Answer:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> CoreSchema:
            return schema

    return Answer
