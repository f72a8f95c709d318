"""Which decisions a response schema allows, and the answer each one starts from.

A decision is an object whose ``type`` is a constant: approve, edit, reject, respond, or a word of the
agent's own. Any other schema asks for an answer, and so is one choice, ``answer``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from django.utils.translation import gettext, gettext_noop

from reviewer.cards import branches
from reviewer.cards.schema import Document, Undrawable
from reviewer.cards.tree import Entry, Group, Node, State, Tree
from reviewer.cards.values import MISSING, Json, key_text

APPROVE, EDIT, REJECT, RESPOND, ANSWER = "approve", "edit", "reject", "respond", "answer"
VERDICTS: Final = (APPROVE, EDIT, REJECT, RESPOND)
TEXT_OR_JSON: Final[Json] = {"anyOf": [{"type": "string", "title": "Text"}, {"title": "JSON"}]}
"""What stands for the schema of an answer that may be anything: most are words, and words need no quotes."""
MOST_KEPT: Final = 256
LONGEST_KEPT: Final = 64 * 1024
"""Documents whose decisions a process keeps, and characters of the longest, and of what is kept of it."""
_ARGS_NAME: Final = "arguments of the tool"
_MESSAGES: Final = {REJECT: gettext_noop("Message to the agent"), RESPOND: gettext_noop("Your answer")}


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision a reviewer may take. ``root`` is the whole document that ``schema`` belongs to."""

    verdict: str
    schema: Json
    root: Json
    initial: Json = MISSING
    label: str = ""
    direct: bool = False

    @property
    def is_free(self) -> bool:
        """Say whether any answer will do; one that nobody typed is none."""
        return self.schema is TEXT_OR_JSON

    @property
    def names(self) -> frozenset[str]:
        """What this decision is called in the errors of an agent's own type check."""
        title = self.schema.get("title") if isinstance(self.schema, dict) else None
        return frozenset({self.verdict, title} if isinstance(title, str) else {self.verdict})

    @property
    def args_pointer(self) -> str:
        """Where the edited arguments are in the answer; "" for all but an edit of a tool call."""
        return "/edited_action/args" if _is_edit_of_action(self.initial) else ""

    @property
    def args_schema(self) -> Json:
        """The schema of the edited arguments, a part of ``root``; True where it is not known."""
        document = Document(self.root)
        try:
            action = document.plain(self.schema["properties"]["edited_action"])
            return action["properties"]["args"]
        except (Undrawable, KeyError, TypeError):
            return True


def choices(
    response_schema: Json, *, tool: str, args: Json, args_schema: Json | None = None
) -> tuple[Choice, ...]:
    """Return the allowed decisions: approve, edit, reject, respond, then the agent's own."""
    root = _with_args_schema(response_schema, args_schema)
    if response_schema is True:  # the agent takes anything
        return (Choice(ANSWER, TEXT_OR_JSON, TEXT_OR_JSON, initial=""),)
    found = _decisions_of(root)
    if not found:
        label = _only_answer(Document(root))
        return (Choice(ANSWER, root, root, label=label or "", direct=label is not None),)
    made = [_choice(verdict, schema, root, tool, args) for verdict, schema in found]
    return tuple(
        sorted(made, key=lambda choice: VERDICTS.index(choice.verdict) if choice.verdict in VERDICTS else 9)
    )


def verdict_of(answer: Json) -> str:
    """Return the verdict of an answer, ``answer`` where it is not a decision."""
    kind = answer.get("type") if isinstance(answer, dict) else None
    return kind if isinstance(kind, str) and kind in VERDICTS else ANSWER


def soften(tree: Tree, verdict: str) -> Tree:
    """Name a decision's message by what it is; an optional one starts open, not sent while it is blank."""
    if not isinstance(tree.root, Group):
        return tree
    fields = tuple(_softened(_named(child, verdict)) for child in tree.root.fields)
    return replace(tree, root=replace(tree.root, fields=fields))


def _softened(node: Node) -> Node:
    if not isinstance(node, Entry) or node.kind != "string":
        return node
    if State.ABSENT not in node.states or node.original is not MISSING:
        return node
    return replace(node, state=State.VALUE, blank_is_absent=True)


def _named(node: Node, verdict: str) -> Node:
    if not isinstance(node, Entry) or node.key != "message" or node.label != "Message":
        return node  # the agent's author has found words of their own
    return replace(node, label=gettext(_MESSAGES[verdict])) if verdict in _MESSAGES else node


def _decisions_of(root: Json) -> list[tuple[str, Json]]:
    """Return (verdict, schema) for each decision of a document; found once for those of the same text."""
    text = key_text(root, LONGEST_KEPT)
    kept = None if text is None else _kept(text)
    return _decisions(Document(root)) if kept is None else json.loads(kept)


@lru_cache(maxsize=MOST_KEPT)
def _kept(text: str) -> str | None:
    """Return the decisions of a document as text, of which everybody makes their own; None: too long."""
    return key_text(_decisions(Document(json.loads(text))), LONGEST_KEPT)


def _decisions(document: Document) -> list[tuple[str, Json]]:
    """Return (verdict, schema) for each decision, or nothing where the schema asks for something else."""
    try:
        shape = document.shape(document.root)
    except Undrawable:
        return []
    if shape.nullable:
        return []
    schemas = [option.schema for option in shape.options] or [shape.schema]
    verdicts = [_constant(document, schema) for schema in schemas]
    known = [verdict for verdict in verdicts if verdict is not None]
    if len(set(known)) < len(schemas) or not set(known) & set(VERDICTS):
        return []
    return [
        (verdict, _with_args_reference(document, schema) if verdict == EDIT else schema)
        for verdict, schema in zip(known, schemas, strict=True)
    ]


def _only_answer(document: Document) -> str | None:
    """Return what the one answer that a schema allows is called, or None where there is a choice."""
    try:
        shape = document.shape(document.root)
    except Undrawable:
        return None
    if shape.nullable or shape.options or "const" not in shape.schema:
        return None
    title, only = shape.schema.get("title"), shape.schema["const"]
    return next((text for text in (title, only) if isinstance(text, str) and text.strip()), "")


def _constant(document: Document, schema: dict[str, Json]) -> str | None:
    properties = schema.get("properties")
    kind = properties.get("type") if isinstance(properties, dict) else None
    if not isinstance(kind, dict):
        return None
    try:
        plain = document.plain(kind)
    except Undrawable:
        return None
    options = [plain["const"]] if "const" in plain else plain.get("enum")
    if not isinstance(options, list) or len(options) != 1 or not isinstance(options[0], str):
        return None
    return options[0]


def _choice(verdict: str, schema: Json, root: Json, tool: str, args: Json) -> Choice:
    properties = schema["properties"]
    title = schema.get("title")
    label = title if verdict not in VERDICTS and isinstance(title, str) and title.strip() else verdict
    direct = set(properties) == {"type"}
    if verdict != EDIT or "edited_action" not in properties or args is MISSING:
        return Choice(verdict, schema, root, label=label, direct=direct)
    initial = {"type": verdict, "edited_action": {"name": tool, "args": args}}
    return Choice(verdict, schema, root, initial=initial, label=label)


def _with_args_schema(response_schema: Json, args_schema: Json | None) -> Json:
    """Return the document with the tool's own schema of its arguments added to its definitions."""
    if args_schema is None or not isinstance(response_schema, dict):
        return response_schema
    known = response_schema.get("$defs")
    kept = known if isinstance(known, dict) else {}
    return {**response_schema, "$defs": {**kept, _ARGS_NAME: _rebased(args_schema)}}


def _rebased(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_rebased(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: f"#/$defs/{_ARGS_NAME}{value[1:]}"
        if key == "$ref" and isinstance(value, str) and value.startswith("#")
        else _rebased(value)
        for key, value in schema.items()
    }


def _with_args_reference(document: Document, schema: Json) -> Json:
    """Return the edit decision with the tool's schema, if there is one, for arguments nothing is known of."""
    known = document.root.get("$defs")
    if not isinstance(known, dict) or _ARGS_NAME not in known:
        return schema
    try:
        action = document.plain(schema["properties"]["edited_action"])
        args = document.plain(action["properties"]["args"])
    except (Undrawable, KeyError, TypeError):
        return schema
    if args.get("properties") or branches.implied_type(args) != "object":
        return schema
    properties = {**action["properties"], "args": {"$ref": f"#/$defs/{_ARGS_NAME}"}}
    return {
        **schema,
        "properties": {**schema["properties"], "edited_action": {**action, "properties": properties}},
    }


def _is_edit_of_action(initial: Json) -> bool:
    return isinstance(initial, dict) and isinstance(initial.get("edited_action"), dict)
