"""What programs send: bodies parsed so that every value stays exactly what was sent, or is refused.

Python's parser alone would keep the last of two equal keys, read ``NaN``, and turn ``1e999`` into infinity.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

from django.http import HttpRequest
from ninja.parser import Parser
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from agents_runtime.canonical import Json, storable

MAX_DEPTH = 60  # the canonical encoder stops at 64


class Unreadable(ValueError):
    """The body is not JSON at all."""


class Unfit(ValueError):
    """The body is JSON to some parsers, but its meaning is not one thing."""


class StrictJson(Parser):
    """The API's parser."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the body's exact value; raise ``Unreadable`` or ``Unfit``."""
        return parse(request.body)


def parse(body: bytes) -> Json:
    """Return the exact value of JSON text in UTF-8; raise ``Unreadable`` or ``Unfit``."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError as problem:
        raise Unreadable("The body is not UTF-8 text.") from problem
    except json.JSONDecodeError as problem:
        raise Unreadable(f"The body is not JSON: {problem.msg}, line {problem.lineno}.") from problem
    except RecursionError as problem:
        raise Unfit(f"The body is nested more than {MAX_DEPTH} levels deep.") from problem
    except Unfit:
        raise
    except ValueError as problem:  # Python reads no integer of more than 4,300 digits
        raise Unfit("A number in the body has too many digits.") from problem
    if _is_deeper(value, MAX_DEPTH):
        raise Unfit(f"The body is nested more than {MAX_DEPTH} levels deep.")
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise Unfit(f"The key {json.dumps(key)} stands twice in one object.")
        found[key] = value
    return found


def _refuse_constant(name: str) -> None:
    raise Unfit(f"{name} is not a JSON number.")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unfit(f"The number {text} is too large.")
    return value


def _is_deeper(value: Json, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    if levels == 0:
        return True
    items = value.values() if isinstance(value, dict) else value
    return any(_is_deeper(item, levels - 1) for item in items)


def _plain_text(text: str) -> str:
    if storable(text) != text:
        raise ValueError("must not contain NUL or lone surrogate characters")
    return text


Text = Annotated[str, AfterValidator(_plain_text)]


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


Blank = BeforeValidator(_none_if_empty)
"""Lets a parameter stand empty in an address, which means that it is not there."""


class Body(BaseModel):
    """A body: its own fields only, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class StartRun(Body):
    """Which agent to start, on what."""

    agent: Annotated[Text, Field(max_length=100, description="Its name, as on the Agents page.")]
    input: Any = Field(description="Fits the agent's input schema.")


class NewInput(Body):
    """The next input of a run."""

    input: Any
    close_open_reviews: bool = Field(
        default=False,
        description="Close the run's open tasks first, undecided; without it they refuse the input (409).",
    )


class Settlement(Body):
    """What happened to a tool whose end nobody saw."""

    outcome: Annotated[
        Text, Field(pattern=r"\A(happened|run_again|stop)\z", description="happened, run_again or stop")
    ]
    result: Any = Field(default=None, description="For `happened`: what the tool returned.")
    execution: int | None = Field(
        default=None, description="Which attempt, where a run has several in doubt."
    )


class NewDecision(Body):
    """An answer to exactly the card with this digest."""

    answer: Any = Field(
        description='Fits the task\'s `response_schema`, such as {"type": "approve"} for a tool call.'
    )
    digest: Annotated[Text, Field(max_length=64, description="The `digest` of the card you looked at.")]
    claim_version: int | None = Field(
        default=None, description="The one your claim gave; refused once somebody claimed after you."
    )
    reason_code: Annotated[Text, Field(max_length=40, description="Why, in your own list of codes.")] = ""
    comment: str = Field(default="", description="For the trail; at most 4,000 characters.")
