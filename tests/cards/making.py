"""What card tests share: the samples, and a reviewer who opens, types and sends without a browser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.safestring import SafeString

from reviewer import cards
from reviewer.cards import render
from reviewer.cards.card import Form, Reading
from reviewer.cards.values import MISSING
from tests.cards.browser import Page, Post

SAMPLES = {
    path.stem: json.loads(path.read_text()) for path in sorted(Path(__file__).parent.glob("samples/*.json"))
}


def schema_of(sample: dict[str, Any]) -> Any:
    return sample["schema"] if "schema" in sample else sample["response_schema"]


def card_of(sample: dict[str, Any], **changes: Any) -> cards.Card:
    """Return the card that a stored interrupt becomes."""
    value: Any = sample.get("interrupt_value", sample.get("value"))
    is_call = isinstance(value, dict) and value.get("type") == "tool_approval"
    return cards.build(
        cards.CardRequest(
            **{
                "card_id": "t1",
                "tool": value["name"] if is_call else "",
                "args": value["args"] if is_call else value,
                "response_schema": schema_of(sample),
                **changes,
            }
        )
    )


def tool_card(args_schema: Any, args: Any, *, tool: str = "act", **changes: Any) -> cards.Card:
    """Return the card of a call of one tool, all four decisions allowed."""
    return cards.build(
        cards.CardRequest(
            **{
                "card_id": "t1",
                "tool": tool,
                "args": args,
                "response_schema": decision_schema(args_schema),
                **changes,
            }
        )
    )


def decision_schema(args_schema: Any, *, tool: str = "act") -> dict[str, Any]:
    """Return the response schema of a gated tool, as the library writes it."""
    known = args_schema.get("$defs") if isinstance(args_schema, dict) else None
    defs = known if isinstance(known, dict) else {}
    message = {"title": "Message", "type": "string"}
    action = {
        "type": "object",
        "properties": {"name": {"const": tool}, "args": args_schema},
        "required": ["name", "args"],
    }
    return {
        "$defs": {
            **defs,
            "Approve": _decision("approve"),
            "Edit": _decision("edit", edited_action=action),
            "Reject": _decision("reject", optional={"message": message}),
            "Respond": _decision("respond", message=message),
        },
        "discriminator": {
            "propertyName": "type",
            "mapping": {name.lower(): f"#/$defs/{name}" for name in ("Approve", "Edit", "Reject", "Respond")},
        },
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in ("Approve", "Edit", "Reject", "Respond")],
    }


def _decision(verdict: str, *, optional: dict[str, Any] | None = None, **required: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"type": {"const": verdict, "type": "string"}, **required, **(optional or {})},
        "required": ["type", *required],
    }


@dataclass
class Reviewer:
    """Someone with one form open; every step goes through HTML and back, as a browser would."""

    form: Form
    card: cards.Card | None = None
    reading: Reading | None = None

    @classmethod
    def at(cls, card: cards.Card, verdict: str = "edit") -> Reviewer:
        return cls(card.open(verdict), card)

    @classmethod
    def before(cls, schema: Any, value: Any = MISSING) -> Reviewer:
        """Return a reviewer before a form of any schema that starts from ``value``."""
        return cls(cards.build_input_form(schema, form_id="f", initial=value))

    @property
    def html_safe(self) -> SafeString:
        errors = self.reading.errors if self.reading else ()
        return render.render_form(self.form, errors)

    @property
    def html(self) -> str:
        return str(self.html_safe)

    @property
    def page(self) -> Page:
        return Page(self.html)

    def press(self, operation: str, **typed: str) -> Reading:
        """Press a structural button, with some fields changed before."""
        reading = self._read(self.page.post_with(operation, _names(typed)))
        assert reading.is_op
        return reading

    def send(self, **typed: str) -> Reading:
        """Press the button that sends the form."""
        return self._read(self.page.post_with(None, _names(typed)))

    def post(self, fields: dict[str, list[str]]) -> Reading:
        """Post whatever a hostile client likes."""
        return self._read({"verdict": [self.form.verdict], **fields})

    def _read(self, fields: dict[str, list[str]]) -> Reading:
        post = Post(fields)
        self.reading = (
            cards.read_form(self.form, post) if self.card is None else cards.read_decision(self.card, post)
        )
        self.form = self.reading.form
        return self.reading


def _names(typed: dict[str, str]) -> dict[str, str]:
    return typed
