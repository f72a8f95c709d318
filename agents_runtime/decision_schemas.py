"""The schema of a decision, for interrupts that bring none: the same form that per-call mode publishes."""

from __future__ import annotations

from collections.abc import Sequence

from agents_runtime.canonical import Json

DEFINITIONS = {
    "approve": "ApproveDecision",
    "edit": "EditDecision",
    "reject": "RejectDecision",
    "respond": "RespondDecision",
}


def decision_schema(tool: str, decisions: Sequence[str], args_schema: Json) -> Json:
    """Return a JSON Schema of the allowed decisions on ``tool``; an edit may not change the tool."""
    known = [decision for decision in dict.fromkeys(decisions) if decision in DEFINITIONS]
    args, inner = _args_and_definitions(args_schema)
    branches = {DEFINITIONS[decision]: _decision(decision, tool, args) for decision in known}
    return {
        "oneOf": [{"$ref": f"#/$defs/{DEFINITIONS[decision]}"} for decision in known],
        "discriminator": {
            "propertyName": "type",
            "mapping": {decision: f"#/$defs/{DEFINITIONS[decision]}" for decision in known},
        },
        "$defs": {**inner, **branches},
    }


def _args_and_definitions(args_schema: Json) -> tuple[Json, dict[str, Json]]:
    """Return the arguments' schema without its definitions, and those: references start at the root."""
    if not isinstance(args_schema, dict):
        return {"type": "object"}, {}
    definitions = args_schema.get("$defs")
    args = {key: value for key, value in args_schema.items() if key != "$defs"}
    return args, dict(definitions) if isinstance(definitions, dict) else {}


def _decision(decision: str, tool: str, args: Json) -> Json:
    properties: dict[str, Json] = {"type": {"const": decision, "type": "string"}}
    required = ["type"]
    if decision == "edit":
        action = {"name": {"const": tool, "type": "string"}, "args": args}
        properties["edited_action"] = {"type": "object", "properties": action, "required": ["name", "args"]}
        required.append("edited_action")
    if decision in {"reject", "respond"}:
        properties["message"] = {"type": "string", "title": "Message"}
    if decision == "respond":
        required.append("message")
    return {"title": DEFINITIONS[decision], "type": "object", "properties": properties, "required": required}
