"""The words of cards that a person reads, translated here; the schema's own words are data."""

from __future__ import annotations

import re
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from reviewer.cards.errors import MESSAGES, FieldError
from reviewer.cards.patterns import form_of
from reviewer.cards.tree import (
    Choice,
    Entry,
    Fixed,
    Group,
    Items,
    Lazy,
    Mapping,
    Multi,
    Node,
    Raw,
    State,
    Union,
)
from reviewer.cards.values import Json, type_of
from reviewer.cards.view import Layout, Row

Text = str | Promise
_AGENTS_PATTERN: Final = re.compile(r"String should match pattern '(.*)'", re.DOTALL)

TYPES: Final[dict[str, Text]] = {
    "string": _("string"),
    "integer": _("integer"),
    "number": _("number"),
    "boolean": _("boolean"),
    "null": _("null"),
    "object": _("object"),
    "array": _("list"),
    "group": _("object"),
    "mapping": _("map"),
    "tuple": _("list"),
    "items": _("list"),
    "union": _("one of several kinds"),
}
LISTS: Final[dict[str, Text]] = {
    "string": _("list of strings"),
    "integer": _("list of integers"),
    "number": _("list of numbers"),
    "boolean": _("list of booleans"),
    "object": _("list of objects"),
}
FORMATS: Final[dict[str, Text]] = {
    "date": _("date"),
    "date-time": _("date and time"),
    "time": _("time"),
    "duration": _("duration"),
    "email": _("email address"),
    "uri": _("web address"),
    "uuid": _("UUID"),
    "binary": _("binary"),
}
EXAMPLES: Final = {
    "date-time": "2026-12-01T09:30:00+01:00",
    "time": "09:30:00",
    "duration": "PT1H30M",
    "uuid": "7b0a1d9e-3f7f-4b7b-9a3a-0f2f9c8e5a11",
    "uri": "https://example.org/",
}
KINDS: Final[dict[str, Text]] = {
    "string": _("Text"),
    "integer": _("Whole number"),
    "number": _("Number"),
    "boolean": _("Yes or no"),
    "null": _("Null"),
    "object": _("Object"),
    "array": _("List"),
    "": _("Other"),
}
REASONS: Final[dict[str, Text]] = {
    "any": _("Any JSON value is allowed here, so you edit it as JSON."),
    "any-items": _("Any list is allowed here, so you edit it as JSON."),
    "open-object": _("Nothing is known of the keys of this object, so you edit it as JSON."),
    "misfit": _("The agent’s value is not what its schema asks for. It is shown as it is."),
    "untypeable": _("This holds characters that a text field cannot hold, so you edit it as JSON."),
    "deep": _("This is nested too deeply for a form, so you edit it as JSON."),
    "long-list": _("This list is too long for a form, so you edit it as JSON."),
    "large": _("This is too large for a form, so you edit it as JSON."),
    "large-schema": _("The schema is too large for a form, so you edit the answer as JSON."),
    "many-branches": _("There are too many kinds to choose from, so you edit it as JSON."),
    "many-options": _("There are too many values to choose from, so you edit it as JSON."),
    "keyword": _("The schema uses %(detail)s, for which there is no form, so you edit it as JSON."),
    "outside": _("The schema points outside itself (%(detail)s), so you edit it as JSON."),
    "dangling": _("The schema points to %(detail)s, which is not there, so you edit it as JSON."),
    "circular": _("The schema points to itself in a circle (%(detail)s), so you edit it as JSON."),
    "conflict": _("The schema contradicts itself at %(detail)s, so you edit it as JSON."),
    "two-unions": _("The schema has anyOf and oneOf at once, so you edit it as JSON."),
    "nothing-fits": _("The schema allows no value here."),
    "not-a-schema": _("This part of the schema cannot be read, so you edit it as JSON."),
    "asked": _("You are editing this as JSON."),
    "extra": _("Keys that the schema does not name."),
    "not-allowed": _("Keys that the schema does not allow. Remove them to send this."),
}
VERDICTS: Final[dict[str, Text]] = {
    "approve": _("Approve"),
    "edit": _("Edit"),
    "reject": _("Reject"),
    "respond": _("Respond"),
    "answer": _("Answer"),
}
CHANGES: Final[dict[str, Text]] = {
    "changed": _("Changed"),
    "added": _("Added"),
    "removed": _("Removed"),
    "moved": _("Moved"),
}


def error_text(error: FieldError) -> str:
    """Return what is wrong and how to mend it, in the reader's language."""
    pattern = pattern_of(error)
    return gettext(MESSAGES[error.code]) % error.params if pattern is None else _pattern_text(pattern)


def pattern_of(error: FieldError) -> str | None:
    """Return the regular expression that a text does not match, our own check or the agent's says so."""
    if error.code == "pattern":
        return str(error.params["pattern"])
    found = _AGENTS_PATTERN.fullmatch(str(error.params.get("message", "")))
    return found[1] if error.code == "agent" and found else None


def _pattern_text(pattern: str) -> str:
    form = form_of(pattern)
    if form is None:
        return gettext("This does not have the form that the agent asks for")
    if not form.example:
        return gettext("Enter %(form)s") % {"form": form.words}
    return gettext("Enter %(form)s, such as %(example)s") % {"form": form.words, "example": form.example}


def pattern_example(schema: Json) -> str:
    """Return a text that has the form a schema asks for, or "" where none is known."""
    pattern = schema.get("pattern") if isinstance(schema, dict) else None
    form = form_of(pattern) if isinstance(pattern, str) else None
    return form.example if form else ""


def reason_text(node: Raw) -> str:
    """Return why a field is edited as JSON."""
    return str(REASONS.get(node.reason, "")) % {"detail": node.detail}


def type_words(node: Node) -> str:
    """Return the type of a field as in "string, up to 120 characters, optional"."""
    is_tuple = isinstance(node, Items) and node.fixed
    limits = _limits(node.schema) if isinstance(node.schema, dict) and not is_tuple else []
    words = [_node_type(node), *limits]
    if State.NULL in node.states:
        words[0] = gettext("%(type)s or null") % {"type": words[0]}
    if not node.required:
        words.append(gettext("optional"))
    return ", ".join(word for word in words if word)


def _node_type(node: Node) -> str:
    match node:
        case Choice():
            return str(TYPES["boolean"]) if node.is_boolean else gettext("enum")
        case Multi():
            return gettext("set of enum")
        case Entry():
            return _string_type(node.schema) if node.kind == "string" else str(TYPES[node.kind])
        case Fixed():
            return gettext("fixed")
        case Raw():
            return gettext("JSON")
        case Union():
            return gettext("one of %(count)s kinds") % {"count": len(node.branches)}
        case Items() if node.fixed:
            return gettext("list of exactly %(count)s") % {"count": len(node.items)}
        case Lazy():
            return str(TYPES[node.kind])
        case Items():
            return str(TYPES["array"])
        case Mapping():
            return str(TYPES["mapping"])
        case Group():
            return str(TYPES["object"])
    return ""


def _string_type(schema: dict[str, Json]) -> str:
    name = schema.get("format")
    return str(FORMATS.get(name, TYPES["string"]) if isinstance(name, str) else TYPES["string"])


def _limits(schema: dict[str, Any]) -> list[str]:
    """Return the limits of a schema in words: "0 to 120", "up to 120 characters", "1 to 5 items"."""
    words = [
        _range(schema.get("minimum"), schema.get("maximum")),
        _counted(schema.get("minLength"), schema.get("maxLength"), characters=True),
        _counted(schema.get("minItems"), schema.get("maxItems"), characters=False),
    ]
    if _is_count(schema.get("exclusiveMinimum")):
        words.append(gettext("more than %(limit)s") % {"limit": _plain(schema["exclusiveMinimum"])})
    if _is_count(schema.get("exclusiveMaximum")):
        words.append(gettext("less than %(limit)s") % {"limit": _plain(schema["exclusiveMaximum"])})
    return [word for word in words if word]


def _range(low: Json, high: Json) -> str:
    if _is_count(low) and _is_count(high):
        return gettext("%(low)s to %(high)s") % {"low": _plain(low), "high": _plain(high)}
    if _is_count(low):
        return gettext("%(low)s or more") % {"low": _plain(low)}
    return gettext("up to %(high)s") % {"high": _plain(high)} if _is_count(high) else ""


def _counted(low: Json, high: Json, *, characters: bool) -> str:
    limits = _range(low if low else None, high)
    if not limits:
        return ""
    many = high if isinstance(high, int) else 2
    if characters:
        return ngettext("%(limits)s character", "%(limits)s characters", many) % {"limits": limits}
    return ngettext("%(limits)s item", "%(limits)s items", many) % {"limits": limits}


def _is_count(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def row_type(row: Row) -> str:
    """Return the type of a shown argument, as in "string, optional"."""
    words = [_row_type(row)]
    if row.nullable:
        words[0] = gettext("%(type)s or null") % {"type": words[0]}
    if row.optional:
        words.append(gettext("optional"))
    return ", ".join(words)


def _row_type(row: Row) -> str:
    schema = row.schema
    if row.misfit and str(schema["type"]) in TYPES:
        words = {"found": str(TYPES[row.misfit]), "asked": str(TYPES[str(schema["type"])])}
        return gettext("%(found)s in place of %(asked)s") % words
    if "enum" in schema:
        return gettext("enum")
    named = schema.get("type")
    found = named if isinstance(named, str) and named in TYPES else _value_type(row.value)
    if found == "string":
        return _string_type(schema)
    if row.layout in {Layout.WORDS, Layout.TABLE}:
        return _list_type(row)
    return str(TYPES.get(found, gettext("any")))


def _list_type(row: Row) -> str:
    """Return the type of a list whose items do not say theirs one by one."""
    item = _row_type(row.children[0])
    plain = next((name for name in LISTS if item == str(TYPES[name])), None)
    return str(LISTS[plain]) if plain else gettext("list of %(type)s") % {"type": item}


def _value_type(value: Json) -> str:
    try:
        return type_of(value)
    except TypeError:
        return ""
