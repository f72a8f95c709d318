"""The input of a graph, reduced to what a person fills in.

Lives here: JSON Schema in, JSON Schema out. LangGraph describes a list of messages by all its message classes
(60 kB of them); a person gives a role and a text. Does not live here: drawing a form or checking an input.
"""

from __future__ import annotations

from collections.abc import Iterator

from agents_runtime.canonical import Json

MESSAGES: Json = {
    "type": "array",
    "title": "Messages",
    "minItems": 1,
    "items": {
        "type": "object",
        "title": "Message",
        "properties": {
            "role": {
                "type": "string",
                "title": "Role",
                "enum": ["user", "assistant", "system"],
                "default": "user",
            },
            "content": {"type": "string", "title": "Text", "minLength": 1},
        },
        "required": ["role", "content"],
    },
}
REFERENCE = "#/$defs/"
A_MESSAGE_CLASS = REFERENCE + "HumanMessage"


def for_people(schema: Json, *, is_whole_state: bool) -> Json:
    """Return the schema of an input as a form and the API ask for it.

    ``is_whole_state``: the author gave no input schema of its own, so that LangGraph calls every field of the
    state a required input, results included; then no single field is asked for.
    """
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return schema
    fields = {name: _field(given) for name, given in schema["properties"].items()}
    required = [name for name in schema.get("required", []) if name in fields]
    if is_whole_state and len(fields) > 1:
        required = []
    elif required:
        # A conversation that goes along with fields of its own is what the agent writes, not the person.
        fields = {name: given for name, given in fields.items() if given is not MESSAGES or name in required}
    reduced: dict[str, Json] = {"type": "object", "properties": fields}
    if required:
        reduced["required"] = required
    else:
        reduced["minProperties"] = 1  # LangGraph refuses an empty input
    kept = {key: schema[key] for key in ("description", "additionalProperties") if key in schema}
    return _with_definitions(kept | reduced, schema.get("$defs", {}))


def _field(given: Json) -> Json:
    return MESSAGES if _is_conversation(given) else given


def _is_conversation(given: Json) -> bool:
    """Say whether a field is a list of LangChain's messages, in any of the forms that Pydantic writes."""
    if not isinstance(given, dict) or given.get("type") != "array":
        return False
    return A_MESSAGE_CLASS in set(_references(given.get("items")))


def _with_definitions(schema: dict[str, Json], definitions: dict[str, Json]) -> Json:
    """Add the definitions that the schema still refers to, directly or through one another."""
    used: dict[str, Json] = {}
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop().removeprefix(REFERENCE)
        if name not in used and name in definitions:
            used[name] = definitions[name]
            waiting.extend(_references(definitions[name]))
    return schema | {"$defs": used} if used else schema


def _references(part: Json) -> Iterator[str]:
    """Give every local reference in a schema."""
    if isinstance(part, list):
        for item in part:
            yield from _references(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
