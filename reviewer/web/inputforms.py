"""The form of an agent's input, drawn from its schema: to start a run, and to give a finished one more."""

from __future__ import annotations

from django.http import HttpRequest

from agents_runtime.canonical import decode
from agents_runtime.errors import InvalidInput
from agents_runtime.models import AgentSpec
from reviewer import cards

FORM_ID = "run-input"


def input_form(spec: AgentSpec, *, with_example: bool = True) -> cards.Form:
    """Return the agent's input form, with the author's example in it where there is one."""
    example = decode(spec.example_input) if with_example and spec.example_input else cards.MISSING
    return cards.build_input_form(decode(spec.input_schema), form_id=FORM_ID, initial=example)


def read_input(form: cards.Form, request: HttpRequest) -> cards.Reading:
    """Return what was entered: an input, a structural operation, or errors."""
    return cards.read_form(form, request.POST)


def misfits(form: cards.Form, problem: InvalidInput) -> tuple[cards.FieldError, ...]:
    """Return what the agent's side found wrong, each at its field of the form."""
    found = [{"loc": _steps(item.pointer), "msg": item.message, "type": "agent"} for item in problem.problems]
    return cards.place_errors(form, found)


def _steps(pointer: str) -> list[str | int]:
    """Return the steps of a JSON Pointer, indexes as numbers."""
    steps = (step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
    return [int(step) if step.isdigit() else step for step in steps]
