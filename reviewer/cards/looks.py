"""How a node looks, decided without drawing it: one line or a block, segments or a list, the focus.

Does not live here: HTML of whole fields (``paint``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from reviewer.cards import unicode, words
from reviewer.cards.card import Form
from reviewer.cards.names import EXTRA_STEP, field_of, part_of
from reviewer.cards.secrets import is_secret, secret_names
from reviewer.cards.titles import humanise
from reviewer.cards.tree import Branch, Choice, Entry, Fixed, Group, Mapping, Node, Raw, State, Union, walk
from reviewer.cards.values import MISSING, Json, json_text
from reviewer.cards.visible import visible

_PROSE: Final = frozenset(
    {
        "answer",
        "body",
        "code",
        "comment",
        "content",
        "description",
        "details",
        "html",
        "markdown",
        "message",
        "note",
        "notes",
        "prompt",
        "query",
        "question",
        "reason",
        "script",
        "sql",
        "statement",
        "summary",
        "text",
    }
)
_LONG_LINE: Final = 70
_ANSWERS: Final = frozenset({"", "/~0"})
"""Where the whole answer is one text."""
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME_LIKE: Final = re.compile(r"[a-z]{2,}[a-z0-9]*([_-][a-z0-9]+)*")
_MOST_SEGMENTS: Final = 4
_LONGEST_SEGMENTS: Final = 48
LONGEST_WAS: Final = 120


def name_of(node: Node) -> str:
    """Return what a field is called in plain text, hidden characters written out."""
    if node.path.endswith("/" + EXTRA_STEP):
        return gettext("Other keys")
    label = unicode.visible(node.label).strip()
    if node.label.startswith(" ") and label.isdecimal():  # an item of a list or map that has no name itself
        return gettext("Item %(number)s") % {"number": label}
    return label or (gettext("(no name)") if node.path else gettext("Your answer"))


def focus_of(form: Form) -> str | None:
    """Return the path of the control that gets the focus after an operation."""
    if form.focus is None or form.focus != field_of(form.focus):
        return form.focus
    node = next((node for node in walk(form.tree.root) if node.path == form.focus), None)
    if node is not None and form.focus.rpartition("/")[2].startswith("n") and is_map_item(form, node):
        return part_of(node.path, "key")
    while (
        node is not None and node.state is State.VALUE and isinstance(node, Group | Union) and node.children
    ):
        node = next((child for child in node.children if not isinstance(child, Fixed)), node.children[0])
    return None if node is None else node.path


def is_map_item(form: Form, node: Node) -> bool:
    above = node.path.rpartition("/")[0]
    return any(isinstance(parent, Mapping) and parent.path == above for parent in walk(form.tree.root))


def is_added(node: Node) -> bool:
    """Say whether a field is inside an item that the reviewer added: the agent left nothing out there."""
    return re.search(r"/n\d+(/|$)", node.path) is not None


def is_branch(node: Node) -> bool:
    return re.search(r"/~\d+$", node.path) is not None


def is_labelable(node: Node) -> bool:
    if isinstance(node, Choice):
        return not fits_segments(option_labels(node.options, node)) or is_foreign(node)
    return isinstance(node, Entry | Raw)


def is_one_line(node: Node) -> bool:
    if node.states != (State.VALUE,):
        return False
    if isinstance(node, Entry):
        return input_kind(node, node.text or "") != "block"
    return isinstance(node, Choice | Fixed)


def input_kind(node: Entry, text: str) -> str:
    """Return "block" for a text area, "date" for a date picker, else "text"."""
    if node.kind != "string":
        return "text"
    if node.schema.get("format") == "date" and _is_pickable(text):
        return "date"
    longest = node.schema.get("maxLength")
    roomy = isinstance(longest, int) and longest > 200
    prose = isinstance(node.key, str) and node.key.lower() in _PROSE and "format" not in node.schema
    answer = node.path in _ANSWERS and node.schema.keys().isdisjoint({"format", "pattern", "maxLength"})
    return "block" if "\n" in text or len(text) > _LONG_LINE or roomy or prose or answer else "text"


def _is_pickable(text: str) -> bool:
    """Say whether a date picker can hold a text: browsers drop what is no date, such as 30 February."""
    if text and not _DATE.fullmatch(text):
        return False
    try:
        return not text or bool(date.fromisoformat(text))
    except ValueError:
        return False


def fits_segments(labels: Sequence[str]) -> bool:
    return len(labels) <= _MOST_SEGMENTS and sum(map(len, labels)) <= _LONGEST_SEGMENTS


def is_foreign(node: Choice) -> bool:
    """Say whether the agent's value is none of the options."""
    return node.given and all(
        node.original != option or type(node.original) is not type(option) for option in node.options
    )


def option_text(option: Json, node: Choice | None) -> str:
    if isinstance(option, bool) and node is not None and node.is_boolean:
        return gettext("Yes") if option else gettext("No")
    return (
        unicode.visible(option)
        if isinstance(option, str) and option.strip()
        else json_text(option, indent=None)
    )


def option_labels(options: Sequence[Json], node: Choice | None) -> list[str]:
    """Return what the options are called: names of a program as words, unless two would read the same."""
    texts = [option_text(option, node) for option in options]
    spoken = [
        humanise(text) if isinstance(option, str) and _NAME_LIKE.fullmatch(text) else text
        for option, text in zip(options, texts, strict=True)
    ]
    return spoken if len(set(spoken)) == len(spoken) else texts


def branch_labels(branches: Sequence[Branch]) -> list[str]:
    labels = [
        unicode.visible(branch.label) or str(words.KINDS.get(branch.kind, words.KINDS[""]))
        for branch in branches
    ]
    return [
        f"{label} {labels[: at + 1].count(label)}" if labels.count(label) > 1 else label
        for at, label in enumerate(labels)
    ]


def was(node: Node) -> SafeString:
    """Return what the agent had here, in a few words."""
    value = node.original
    if value is MISSING:
        return visible(gettext("not sent"))
    if isinstance(value, list) and value:
        return visible(ngettext("%(count)s item", "%(count)s items", len(value)) % {"count": len(value)})
    if isinstance(value, dict) and value:
        return visible(ngettext("%(count)s key", "%(count)s keys", len(value)) % {"count": len(value)})
    text = value if isinstance(value, str) and value else json_text(value, indent=None)
    return visible(text if len(text) <= LONGEST_WAS else text[:LONGEST_WAS] + "…")


def default_of(node: Node) -> SafeString | str:
    """Return the default of a field as JSON, cut with a mark where it is long, or nothing."""
    if node.default is MISSING:
        return ""
    text = json_text(node.default, indent=None)
    return visible(text if len(text) <= LONGEST_WAS else text[:LONGEST_WAS] + "…")


def secret_paths(node: Node, *, inside: bool = False) -> Iterator[str]:
    """Yield the paths of the fields whose text is a secret, or holds one."""
    inside = inside or is_secret(node.key, node.schema)
    if isinstance(node, Entry) and inside:
        yield node.path
    if isinstance(node, Raw) and node.reason != "asked" and (inside or _holds_secrets(node)):
        yield node.path  # who asks for JSON asks for all of it
    for child in node.children:
        yield from secret_paths(child, inside=inside)


def _holds_secrets(node: Raw) -> bool:
    return next(secret_names(node.original), None) is not None


def hidden(text: str) -> dict[str, Any] | None:
    """Return the text with its hidden characters shown, where it has any: a text field cannot show them."""
    count = sum(1 for run in unicode.runs(text) if run.glyph)
    return {"count": count, "text": visible(text)} if count else None


def joined(parts: Iterator[SafeString] | Sequence[SafeString | str]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))
