"""Paints a form tree as HTML: field after field, each with its label, hint, error and way back.

Does not live here: reading what comes back (``read``), and the page around the fields (``reviewer.web``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from reviewer.cards import words
from reviewer.cards.card import Form
from reviewer.cards.controls import Controls
from reviewer.cards.decisions import ANSWER, EDIT
from reviewer.cards.draw import draw
from reviewer.cards.errors import FieldError
from reviewer.cards.looks import (
    default_of,
    focus_of,
    is_added,
    is_branch,
    is_labelable,
    joined,
    name_of,
    secret_paths,
    was,
)
from reviewer.cards.names import BASE, RAW, SEEN, STATE, html_id
from reviewer.cards.places import node_at
from reviewer.cards.read import is_changed
from reviewer.cards.secrets import MASK
from reviewer.cards.summary import summary
from reviewer.cards.tree import (
    Entry,
    Fixed,
    Group,
    Items,
    Lazy,
    Mapping,
    Node,
    Raw,
    State,
    Union,
    walk,
)
from reviewer.cards.values import MISSING
from reviewer.cards.visible import visible

_SHORT: Final = 12
_MOST_ROWS: Final = 14
_CONTAINERS: Final = (Group, Items, Mapping, Union, Lazy)


class Painter:
    """Paints one form with its errors."""

    def __init__(self, form: Form, errors: Sequence[FieldError] = ()) -> None:
        self.form_data = form
        self.form_id = form.form_id
        self.posted = form.posted
        self.marks_changes = form.verdict == EDIT
        self.all_errors = [_placed(form, error) for error in errors]
        self.errors: dict[str, list[FieldError]] = {}
        for error in self.all_errors:
            self.errors.setdefault(error.path or "", []).append(error)
        self.args_path = form.choice.args_pointer or None
        self.secrets = frozenset(secret_paths(form.tree.root))
        self.focus = focus_of(form)
        self.controls = Controls(self)

    def form(self) -> SafeString:
        """Return the whole form: hidden fields, error summary, fields, and the way to plain JSON."""
        root = self.form_data.tree.root
        body = self.body(root)
        whole = self.whole_node(root)
        return draw(
            "form",
            verdict=self.form_data.verdict,
            summary=summary(self.form_data, self.all_errors),
            body=body,
            raw_path=None if whole is None else whole.path,
        )

    def whole_node(self, root: Node) -> Node | None:
        """Return what "Edit as JSON" turns into text: the arguments of an edit, or the whole answer."""
        if self.form_data.choice.direct or self.form_data.choice.is_free:
            return None
        pointer = self.form_data.choice.args_pointer
        node = next((node for node in walk(root) if node.path == pointer), root) if pointer else root
        return node if isinstance(node, Group | Items | Mapping | Union) and node.children else None

    def body(self, node: Node) -> SafeString:
        """Return the fields of a root without what only wraps them."""
        if not isinstance(node, Group):
            return self.field(node)
        shown = [child for child in node.children if not self.is_implied(child)]
        fields = joined([self.carried(node), *(self.part(child, wraps=len(shown) == 1) for child in shown)])
        return draw("fields", fields=fields, id=self.id(node)) if node.path else fields

    def is_implied(self, node: Node) -> bool:
        """Say whether a constant is what was chosen already: the kind of a decision, the name of its tool."""
        return isinstance(node, Fixed) and node.required and self.form_data.verdict != ANSWER

    def part(self, node: Node, *, wraps: bool) -> SafeString:
        """Return one part of a root: the arguments, another wrapper, or a field."""
        if node.path == self.args_path:
            return self.arguments(node)
        if wraps and isinstance(node, Group) and node.states == (State.VALUE,):
            return self.body(node)
        return self.field(node)

    def arguments(self, node: Node) -> SafeString:
        """Return the edited arguments, flat where they are an object with fields."""
        if not isinstance(node, Group):
            return self.field(node)
        fields = joined(self.field(child) for child in node.children) or draw("nothing")
        return draw("fields", fields=joined([self.carried(node), fields]), id=self.id(node))

    # One field with all that surrounds its control

    def field(self, node: Node) -> SafeString:
        """Return a labelled field."""
        identity = self.id(node)
        control = self.control(node) if node.state is State.VALUE else self.unsent(node)
        changed = self.marks_changes and not is_added(node) and is_changed(node)
        return draw(
            "field",
            id=identity,
            label=self.label(node),
            name=name_of(node),
            labels_control=is_labelable(node) and (node.state is State.VALUE or State.NULL in node.states),
            key="" if node.key is None or isinstance(node.key, int) else visible(str(node.key)),
            type=gettext("text or JSON") if self.form_data.choice.is_free else words.type_words(node),
            description=visible(node.description) if node.description else "",
            state=self.state(node),
            control=control,
            errors=self.error_texts(node),
            changed=changed,
            default=default_of(node) if node.state is State.VALUE and not node.given else "",
            was=self.was(node) if changed else None,
            path=node.path,
        )

    def id(self, node: Node) -> str:
        return html_id(self.form_data.form_id, node.path)

    def label(self, node: Node) -> SafeString:
        return visible(name_of(node))

    def error_texts(self, node: Node) -> list[SafeString]:
        return [error_line(error) for error in self.errors.get(node.path, ())]

    def was(self, node: Node) -> dict[str, Any]:
        """Return what the agent had here, for the line with Undo."""
        text = SafeString(MASK) if self.is_covered(node) and node.given else was(node)
        return {"text": text, "undo": self.posted.touches(node.path)}

    def is_covered(self, node: Node) -> bool:
        """Say whether a field holds a secret that the reader has not asked to see."""
        return node.path in self.secrets and not self.posted.is_uncovered(node.path)

    def cover(self, node: Node) -> str | None:
        """Return "covered" or "open" for a field that holds a secret, None for any other."""
        if node.path not in self.secrets:
            return None
        return "covered" if self.is_covered(node) else "open"

    # What is sent: a value, null, nothing

    def state(self, node: Node) -> SafeString | None:
        """Return the switch between value, null and not sent, where there is a choice."""
        if isinstance(node, Entry) and node.blank_is_absent:
            return None
        if State.NULL in node.states:
            told = {
                State.VALUE: gettext("Value"),
                State.NULL: gettext("Null"),
                State.ABSENT: gettext("Not sent"),
            }
            options = [
                {"value": str(state), "label": told[state], "checked": state is node.state}
                for state in node.states
            ]
            return draw(
                "state",
                name=STATE + node.path,
                label=gettext("What is sent as %(name)s") % {"name": name_of(node)},
                options=options,
                is_null=node.state is State.NULL,
                default=default_of(node) if node.state is State.ABSENT else "",
                needs_server=isinstance(node, _CONTAINERS),
                focus=self.focus == node.path and node.state is not State.VALUE,
            )
        if State.ABSENT in node.states:
            return draw(
                "optional",
                name=STATE + node.path,
                state=str(node.state),
                field=name_of(node),
                operation=f"set:absent:{node.path}",
            )
        return None

    def unsent(self, node: Node, *, name: str = "") -> SafeString:
        """Return what stands in place of a value that is null or not sent."""
        if node.state is State.NULL or State.NULL in node.states:
            # The control stays at hand, so that choosing "Value" needs no script; containers
            # are made on request.
            return joined([]) if isinstance(node, _CONTAINERS) else self.control(node, name=name)
        return draw(
            "notsent",
            agent=self.marks_changes and node.original is MISSING and not is_added(node),
            default=default_of(node),
            operation=f"set:value:{node.path}",
            field=name_of(node),
            focus=self.focus == node.path,
        )

    def control(self, node: Node, *, name: str = "") -> SafeString:
        """Return the control of a field; ``name`` labels it where no label element does."""
        return joined([self.carried(node), self.controls.control(node, name)])

    def carried(self, node: Node) -> SafeString:
        """Return hidden fields that say what was shown here, and what it was started from."""
        hidden: list[tuple[str, str]] = []
        if node.path in self.secrets and not self.is_covered(node):
            hidden.append((SEEN + node.path, "1"))
        base = self.posted.base_text(node.path)
        if base is not None:
            hidden.append((BASE + node.path, base))
        if isinstance(node, Raw) and node.reason == "asked":
            hidden.append((RAW + node.path, "1"))
        elif len(node.states) > 1 or is_branch(node):
            hidden.append((RAW + node.path, "0"))
        return format_html_join("", '<input type="hidden" name="{}" value="{}">', hidden)

    def aria(self, node: Node, name: str) -> dict[str, Any]:
        identity = self.id(node)
        described = []
        if node.description and not name:
            described.append(f"{identity}-h")
        # What is wrong with a union is wrong with the control of its chosen kind.
        places = [node.path, node.path.rpartition("/")[0]] if is_branch(node) else [node.path]
        wrong = [place for place in places if self.errors.get(place)]
        described += [f"{html_id(self.form_data.form_id, place)}-e" for place in wrong]
        return {
            "id": identity,
            "aria_label": name,
            "described": " ".join(described),
            "invalid": bool(wrong),
            "focus": self.focus == node.path,
        }


def error_line(error: FieldError) -> SafeString:
    """Return what is wrong, with the pattern itself in second place where one is not matched."""
    text, pattern = words.error_text(error), words.pattern_of(error)
    if pattern is None:
        return conditional_escape(text)
    return format_html("{} <code>{}</code>", text, visible(pattern))


def _placed(form: Form, error: FieldError) -> FieldError:
    """Return an error with its field; one that came with a pointer only is at the nearest."""
    if error.path is not None:
        return error
    steps = [step.replace("~1", "/").replace("~0", "~") for step in error.pointer.split("/")[1:]]
    return replace(error, path=node_at(form.tree.root, steps).path)
