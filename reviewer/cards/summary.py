"""The summary of errors on top of a form: how many, each with the way to its field and a link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.safestring import SafeString

from reviewer.cards import words
from reviewer.cards.card import Form
from reviewer.cards.decisions import ANSWER
from reviewer.cards.draw import draw
from reviewer.cards.errors import FieldError
from reviewer.cards.looks import is_branch, name_of
from reviewer.cards.names import field_of, html_id
from reviewer.cards.tree import Fixed, Node, walk


def summary(form: Form, errors: Sequence[FieldError]) -> SafeString:
    """Return the banner of a form with errors, or nothing."""
    if not errors:
        return SafeString("")
    nodes = {node.path: node for node in walk(form.tree.root)}
    return draw(
        "summary",
        errors=[_line(form, error, nodes) for error in errors],
        count=len(errors),
        unchanged=form.can_approve and any(error.code == "unchanged" for error in errors),
    )


def _line(form: Form, error: FieldError, nodes: dict[str, Node]) -> dict[str, Any]:
    """Return the way to a field, what is wrong there, and the field's id."""
    place = error.path or ""
    path = field_of(place)
    node = nodes.get(path) if path else None
    is_shown = node is not None and not (isinstance(node, Fixed) and form.verdict != ANSWER)
    return {
        "way": " › ".join(_way(form, path, nodes)),
        "text": words.error_text(error),
        "id": html_id(form.form_id, place) if is_shown else "",
    }


def _way(form: Form, path: str, nodes: dict[str, Node]) -> list[str]:
    """Return the names of the fields on the way to a path, without those that only wrap."""
    names: list[str] = []
    start = len(form.choice.args_pointer) + 1
    ends = [at for at in range(start, len(path)) if path[at] == "/"] + [len(path)]
    for node in (nodes.get(path[:end]) for end in ends if path):
        if node is None or is_branch(node) or not node.label:
            continue
        name = name_of(node)
        if names and name.startswith(names[-1]):  # "Recipients" says nothing beside "Recipients 3"
            names.pop()
        names.append(name)
    return names
