"""What can be wrong with an answer: one error names its place by JSON Pointer, its code, and how to mend it.

The English wording lives here, so that the API can speak it; ``render`` translates the same templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reviewer.cards.values import Json


def gettext_noop(text: str) -> str:
    """Mark a text for translation; this room does not translate."""
    return text


MESSAGES: Final = {
    # what was typed
    "text": gettext_noop("Remove the characters that text cannot hold"),
    "integer": gettext_noop("Enter a whole number in digits"),
    "number": gettext_noop("Enter a number, such as 12 or 12.5"),
    "digits": gettext_noop("Enter a number with fewer digits; this one would be rounded to %(sent)s"),
    "missing": gettext_noop("Enter a value"),
    "unseen": gettext_noop("Fill in the fields of what you chose"),
    "choose": gettext_noop("Choose one"),
    "choose-kind": gettext_noop("Choose a kind first"),
    "json": gettext_noop("Line %(line)s, column %(column)s: this is not valid JSON"),
    "json-empty": gettext_noop("Enter a JSON value"),
    "json-duplicate": gettext_noop("The key “%(key)s” stands here twice"),
    "json-constant": gettext_noop("JSON has no %(name)s"),
    "json-deep": gettext_noop("This JSON is nested too deeply"),
    "json-object": gettext_noop("Enter a JSON object: { … }"),
    "key-taken": gettext_noop("The key “%(key)s” stands here twice; use another"),
    "key-missing": gettext_noop("Enter a key"),
    "overflow": gettext_noop("This form has grown too large. Use “Edit as JSON” instead"),
    "unchanged": gettext_noop("Nothing is changed. Approve instead, or change something"),
    "verdict": gettext_noop("Choose one of the decisions that are allowed here"),
    "message": gettext_noop("Write your answer"),
    # what the schema asks for
    "required": gettext_noop("“%(key)s” is missing"),
    "type": gettext_noop("This must be %(type)s"),
    "minimum": gettext_noop("Enter %(limit)s or more"),
    "maximum": gettext_noop("Enter %(limit)s or less"),
    "exclusiveMinimum": gettext_noop("Enter more than %(limit)s"),
    "exclusiveMaximum": gettext_noop("Enter less than %(limit)s"),
    "multipleOf": gettext_noop("Enter a multiple of %(limit)s"),
    "blank": gettext_noop("Enter some text"),
    "empty": gettext_noop("Add an item"),
    "minLength": gettext_noop("Enter %(limit)s characters or more"),
    "maxLength": gettext_noop("Enter %(limit)s characters or fewer"),
    "pattern": gettext_noop("This must match the pattern %(pattern)s"),
    "minItems": gettext_noop("Add items until there are %(limit)s or more"),
    "maxItems": gettext_noop("Remove items until there are %(limit)s or fewer"),
    "uniqueItems": gettext_noop("Every item may be here only once"),
    "enum": gettext_noop("This value is not one of those allowed"),
    "const": gettext_noop("This must be %(value)s"),
    "additionalProperties": gettext_noop("Remove what is not allowed here: %(keys)s"),
    "schema": gettext_noop("This does not fit what the agent asked for"),
    # what others say
    "agent": "%(message)s",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with an answer: a JSON Pointer into it ("" is the whole), and the form field."""

    pointer: str
    code: str
    params: Mapping[str, Json] = field(default_factory=dict)
    path: str | None = None

    @property
    def message(self) -> str:
        """What is wrong and how to mend it, in English."""
        return MESSAGES[self.code] % self.params

    def to_json(self) -> dict[str, Json]:
        """Return the error as the API sends it."""
        return {"pointer": self.pointer, "code": self.code, "message": self.message}
