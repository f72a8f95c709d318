"""Paints a form tree as HTML: one field after another, each control with its label, hint, error and way
back.

Does not live here: reading what comes back (``read``), and the page around the fields (``reviewer.web``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from reviewer.cards import unicode, words
from reviewer.cards.card import Form
from reviewer.cards.decisions import EDIT
from reviewer.cards.draw import draw
from reviewer.cards.errors import FieldError
from reviewer.cards.names import BASE, BRANCH, EXTRA_STEP, ITEMS, KEY, RAW, STATE, VALUE, html_id
from reviewer.cards.read import is_changed
from reviewer.cards.tree import (
    Branch,
    Choice,
    Entry,
    Fixed,
    Group,
    Item,
    Items,
    Lazy,
    Mapping,
    Multi,
    Node,
    Raw,
    State,
    Union,
    walk,
)
from reviewer.cards.values import MISSING, Json, json_text, text_of
from reviewer.cards.visible import visible

_PROSE: Final = frozenset(
    [
        "body",
        "text",
        "message",
        "content",
        "description",
        "note",
        "notes",
        "comment",
        "comments",
        "prompt",
        "query",
        "sql",
        "statement",
        "reason",
        "explanation",
        "answer",
        "summary",
        "details",
        "question",
        "script",
        "code",
        "markdown",
        "html",
    ]
)
_LONG_LINE: Final = 70
_SHORT: Final = 12
_MOST_ROWS: Final = 14
_DATE: Final = re.compile(r"(\d{4}-\d{2}-\d{2})?")
_MOST_SEGMENTS: Final = 4
_LONGEST_SEGMENTS: Final = 48
_LONGEST_WAS: Final = 120
_CONTAINERS: Final = (Group, Items, Mapping, Union, Lazy)


class Painter:
    """Paints one form with its errors."""

    def __init__(self, form: Form, errors: Sequence[FieldError] = ()) -> None:
        self.form_data = form
        self.posted = form.posted
        self.marks_changes = form.verdict == EDIT
        self.errors: dict[str, list[FieldError]] = {}
        for error in errors:
            self.errors.setdefault(error.path or "", []).append(error)
        self.args_path = form.choice.args_pointer or None
        self.focus = _focus_of(form)

    def form(self) -> SafeString:
        """Return the whole form: hidden fields, error summary, fields, and the way to plain JSON."""
        root = self.form_data.tree.root
        body = self.body(root)
        whole = self.whole_node(root)
        return draw(
            "form",
            verdict=self.form_data.verdict,
            summary=self.summary(),
            body=body,
            raw_path=None if whole is None else whole.path,
        )

    def whole_node(self, root: Node) -> Node | None:
        """Return what "Edit as JSON" turns into text: the arguments of an edit, or the whole answer
        of a custom form."""
        if self.form_data.choice.direct:
            return None
        pointer = self.form_data.choice.args_pointer
        node = next((node for node in walk(root) if node.path == pointer), root) if pointer else root
        return node if isinstance(node, Group | Items | Mapping | Union) and node.children else None

    def body(self, node: Node) -> SafeString:
        """Return the fields of a root: what only wraps them is left out, so that arguments stand by
        themselves."""
        if not isinstance(node, Group):
            return self.field(node)
        wraps = all(isinstance(child, Fixed | Group) for child in node.fields)
        shown = (child for child in node.children if not _is_wrapper_constant(child, node))
        return _joined([self.carried(node), *(self.part(child, wraps=wraps) for child in shown)])

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
        return _joined([self.carried(node), *(self.field(child) for child in node.children)]) or draw(
            "nothing"
        )

    # One field with all that surrounds its control

    def field(self, node: Node) -> SafeString:
        """Return a labelled field."""
        identity = self.id(node)
        control = self.control(node) if node.state is State.VALUE else self.unsent(node)
        changed = self.marks_changes and is_changed(node)
        return draw(
            "field",
            id=identity,
            label=self.label(node),
            name=self.name(node),
            labels_control=_is_labelable(node) and (node.state is State.VALUE or State.NULL in node.states),
            key="" if node.key is None or isinstance(node.key, int) else visible(str(node.key)),
            type=words.type_words(node),
            description=visible(node.description) if node.description else "",
            state=self.state(node),
            control=control,
            errors=self.error_texts(node),
            changed=changed,
            was=self.was(node) if changed else None,
            path=node.path,
        )

    def id(self, node: Node) -> str:
        return html_id(self.form_data.form_id, node.path)

    def label(self, node: Node) -> SafeString:
        return visible(self.name(node))

    def name(self, node: Node) -> str:
        """Return what a field is called in plain text, hidden characters written out."""
        if node.path.endswith("/" + EXTRA_STEP):
            return gettext("Other keys")
        return unicode.visible(node.label).strip() or (
            gettext("(no name)") if node.path else gettext("Your answer")
        )

    def error_texts(self, node: Node) -> list[str]:
        return [words.error_text(error) for error in self.errors.get(node.path, ())]

    def was(self, node: Node) -> dict[str, Any]:
        """Return what the agent had here, for the line with Undo."""
        return {"text": _was(node), "undo": self.posted.touches(node.path)}

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
                label=gettext("What is sent as %(name)s") % {"name": self.name(node)},
                options=options,
                is_null=node.state is State.NULL,
                needs_server=isinstance(node, _CONTAINERS),
                focus=self.focus == node.path and node.state is not State.VALUE,
            )
        if State.ABSENT in node.states:
            return draw(
                "optional",
                name=STATE + node.path,
                state=str(node.state),
                field=self.name(node),
                operation=f"set:absent:{node.path}",
            )
        return None

    def unsent(self, node: Node) -> SafeString:
        """Return what stands in place of a value that is null or not sent."""
        if node.state is State.NULL or State.NULL in node.states:
            # The control stays at hand, so that choosing "Value" needs no script; containers
            # are made on request.
            return _joined([]) if isinstance(node, _CONTAINERS) else self.control(node)
        default = "" if node.default in (MISSING, None) else json_text(node.default, indent=None)
        return draw(
            "notsent",
            agent=self.marks_changes and node.original is MISSING,
            default=visible(default[:_LONGEST_WAS]),
            operation=f"set:value:{node.path}",
            field=self.name(node),
            focus=self.focus == node.path,
        )

    # The controls

    def control(self, node: Node, *, name: str = "") -> SafeString:
        """Return the control of a field; ``name`` labels it where no label element does."""
        match node:
            case Entry():
                drawn = self.entry(node, name)
            case Choice():
                drawn = self.choice(node, name)
            case Multi():
                drawn = self.multi(node)
            case Fixed():
                drawn = draw(
                    "fixed",
                    text=visible(
                        text_of(node.value) if isinstance(node.value, str) else json_text(node.value)
                    ),
                )
            case Raw():
                drawn = self.raw(node, name)
            case Group():
                drawn = self.group(node)
            case Items():
                drawn = self.items(node)
            case Mapping():
                drawn = self.mapping(node)
            case Union():
                drawn = self.union(node)
            case _:
                drawn = _joined([])
        return _joined([self.carried(node), drawn])

    def carried(self, node: Node) -> SafeString:
        """Return hidden fields that say what was shown here, and what it was started from."""
        hidden: list[tuple[str, str]] = []
        base = self.posted.base_text(node.path)
        if base is not None:
            hidden.append((BASE + node.path, base))
        if isinstance(node, Raw) and node.reason == "asked":
            hidden.append((RAW + node.path, "1"))
        elif len(node.states) > 1 or _is_branch(node):
            hidden.append((RAW + node.path, "0"))
        return format_html_join("", '<input type="hidden" name="{}" value="{}">', hidden)

    def aria(self, node: Node, name: str) -> dict[str, Any]:
        identity = self.id(node)
        described = []
        if node.description and not name:
            described.append(f"{identity}-h")
        if self.errors.get(node.path):
            described.append(f"{identity}-e")
        return {
            "id": identity,
            "aria_label": name,
            "described": " ".join(described),
            "invalid": bool(self.errors.get(node.path)),
            "focus": self.focus == node.path,
        }

    def entry(self, node: Entry, name: str) -> SafeString:
        text = node.text or ""
        form = node.schema.get("format")
        kind = _input_kind(node, text)
        return draw(
            "entry",
            kind=kind,
            name=VALUE + node.path,
            text=text,
            rows=min(_MOST_ROWS, max(3, text.count("\n") + 2 + len(text) // 90)),
            mode={"integer": "numeric", "number": "decimal"}.get(
                node.kind, {"email": "email", "uri": "url"}.get(str(form), "")
            ),
            is_short=node.kind != "string" and len(text) <= _SHORT,
            is_mono=form in {"uuid", "uri", "date-time", "time", "duration", "binary"},
            example=words.EXAMPLES.get(str(form), "") if kind == "text" and not text else "",
            hidden=_hidden(text),
            **self.aria(node, name),
        )

    def choice(self, node: Choice, name: str) -> SafeString:
        options: list[dict[str, Any]] = [
            {"value": str(index), "label": _option(option, node), "checked": node.picked == str(index)}
            for index, option in enumerate(node.options)
        ]
        current = (
            node.given and not any(option["checked"] for option in options) and node.picked == Choice.CURRENT
        )
        if node.given and (current or _is_foreign(node)):
            told = gettext("%(value)s (the agent’s, not allowed)") % {"value": _option(node.original, node)}
            options.append({"value": Choice.CURRENT, "label": told, "checked": current})
        return draw(
            "choice",
            name=VALUE + node.path,
            options=options,
            segments=_fits_segments([option["label"] for option in options]),
            unset=node.picked == "",
            labelled=f"{self.id(node)}-l",
            **self.aria(node, name),
        )

    def multi(self, node: Multi) -> SafeString:
        options = [
            {"value": str(index), "label": _option(option, None), "checked": index in node.picked}
            for index, option in enumerate(node.options)
        ]
        return draw("multi", name=VALUE + node.path, options=options, **self.aria(node, ""))

    def raw(self, node: Raw, name: str) -> SafeString:
        back = {
            "asked": ("form", gettext("Back to the form")),
            "misfit": ("fresh", gettext("Start with an empty form")),
        }
        operation, label = back.get(node.reason, ("", ""))
        return draw(
            "raw",
            name=VALUE + node.path,
            text=node.text,
            rows=min(_MOST_ROWS, max(3, node.text.count("\n") + 2)),
            reason=words.reason_text(node),
            is_warning=node.reason in {"misfit", "not-allowed", "nothing-fits"},
            operation=f"{operation}:{node.path}" if operation and node.can_draw else "",
            operation_label=label,
            **self.aria(node, name),
        )

    def group(self, node: Group) -> SafeString:
        return draw("group", fields=_joined(self.fields(node, None)) or draw("nothing"))

    def fields(self, node: Group, tag: str | None) -> Iterator[SafeString]:
        for child in node.children:
            if not (isinstance(child, Fixed) and child.key == tag and child.required):
                yield self.field(child)

    def items(self, node: Items) -> SafeString:
        count = len(node.items)
        drawn = [self.item(node, item, at, count) for at, item in enumerate(node.items)]
        return draw(
            "items",
            name=ITEMS + node.path,
            items=drawn,
            fixed=node.fixed,
            field=self.name(node),
            operation=f"add:{node.path}",
            focus=self.focus == node.path,
        )

    def item(self, parent: Items, item: Item, at: int, count: int) -> SafeString:
        node = item.node
        name = self.name(node)
        inline = self.inline(node, name)
        return draw(
            "item",
            id=item.id,
            list_name="" if parent.fixed else ITEMS + parent.path,
            inline=inline,
            block=None if inline else self.block(node),
            name=name,
            element=f"{self.id(node)}-i",
            path=node.path,
            number=at + 1,
            first=at == 0,
            last=at == count - 1,
            fixed=parent.fixed,
            added=item.id.startswith("n"),
            errors=self.inline_errors(node) if inline else [],
        )

    def inline(self, node: Node, name: str) -> list[SafeString]:
        """Return one or two controls that fit on one line, or nothing where an item needs more room."""
        if _is_one_line(node):
            return [self.control(node, name=name)]
        if (
            isinstance(node, Group)
            and node.extra is None
            and len(node.fields) == 2
            and all(map(_is_one_line, node.fields))
        ):
            return [
                _joined(
                    [
                        self.carried(node) if at == 0 else "",
                        self.control(child, name=f"{name}, {self.name(child)}"),
                    ]
                )
                for at, child in enumerate(node.fields)
            ]
        return []

    def inline_errors(self, node: Node) -> list[dict[str, str]]:
        return [
            {"id": f"{self.id(part)}-e", "text": words.error_text(error)}
            for part in walk(node)
            for error in self.errors.get(part.path, ())
        ]

    def block(self, node: Node) -> SafeString:
        """Return an item that needs a block of its own, with its switch, control and errors."""
        if isinstance(node, Group) and node.states == (State.VALUE,):
            fields = _joined(self.fields(node, None)) or draw("nothing")
            return draw(
                "block",
                body=_joined([self.carried(node), fields]),
                errors=self.error_texts(node),
                id=self.id(node),
            )
        control = self.control(node, name=self.name(node)) if node.state is State.VALUE else self.unsent(node)
        return draw(
            "block",
            body=format_html('<div class="field__control">{}</div>', control),
            state=self.state(node),
            errors=self.error_texts(node),
            id=self.id(node),
        )

    def mapping(self, node: Mapping) -> SafeString:
        drawn = [self.entry_of(node, item) for item in node.items]
        return draw(
            "mapping",
            name=ITEMS + node.path,
            items=drawn,
            field=self.name(node),
            operation=f"add:{node.path}",
            focus=self.focus == node.path,
        )

    def entry_of(self, parent: Mapping, item: Item) -> SafeString:
        node = item.node
        name = self.name(node)
        inline = (
            self.control(node, name=gettext("%(name)s, value") % {"name": name})
            if _is_one_line(node)
            else None
        )
        return draw(
            "pair",
            id=item.id,
            list_name=ITEMS + parent.path,
            key_name=KEY + node.path,
            key=item.key,
            key_label=gettext("%(name)s, key") % {"name": name},
            inline=inline,
            block=None if inline else self.block(node),
            name=name,
            path=node.path,
            element=f"{self.id(node)}-i",
            added=item.id.startswith("n"),
            errors=self.inline_errors(node) if inline else [],
            focus=self.focus == f"{node.path}#key",
        )

    def union(self, node: Union) -> SafeString:
        labels = _branch_labels(node.branches)
        options = [
            {"value": str(index), "label": label, "checked": index == node.chosen}
            for index, label in enumerate(labels)
        ]
        inner, is_line = self.branch(node)
        left = [
            branch.node for index, branch in enumerate(node.branches) if branch.node and index != node.chosen
        ]
        return draw(
            "union",
            name=BRANCH + node.path,
            options=options,
            segments=_fits_segments(labels),
            label=gettext("Kind of %(name)s") % {"name": self.name(node)},
            inner=inner,
            is_line=is_line,
            put_away=[self.control(branch) for branch in left],
            **self.aria(node, ""),
        )

    def branch(self, node: Union) -> tuple[SafeString, bool]:
        """Return the fields of the chosen kind, and whether they fit beside the switch."""
        chosen = node.branch
        if chosen is None:
            return _joined([]), False
        if isinstance(chosen, Group):
            return _joined([self.carried(chosen), *self.fields(chosen, node.tag)]), False
        control = self.control(chosen, name=self.name(node))
        errors = (
            ""
            if chosen.path == node.path
            else draw("errors", id=self.id(chosen), errors=self.error_texts(chosen))
        )
        return _joined([control, errors]), isinstance(chosen, Entry | Choice | Fixed)

    # The summary of errors

    def summary(self) -> SafeString:
        if not self.errors:
            return _joined([])
        nodes = {node.path: node for node in walk(self.form_data.tree.root)}
        told = [self.told(error, nodes) for errors in self.errors.values() for error in errors]
        return draw(
            "summary",
            errors=told,
            count=len(told),
            unchanged=self.form_data.can_approve
            and any(error.code == "unchanged" for error in self.errors.get("", ())),
        )

    def told(self, error: FieldError, nodes: dict[str, Node]) -> dict[str, Any]:
        """Return one line of the summary: the way to the field, what is wrong, and a link to it."""
        path = error.path or ""
        node = nodes.get(path)
        way = " › ".join(self.way(path, nodes)) if path else ""
        shown = node is not None and bool(path)
        return {"way": way, "text": words.error_text(error), "id": self.id(node) if shown and node else ""}

    def way(self, path: str, nodes: dict[str, Node]) -> list[str]:
        """Return the names of the fields on the way to a path, without those that only wrap."""
        names: list[str] = []
        start = len(self.form_data.choice.args_pointer)
        for at in [index for index in range(start + 1, len(path)) if path[index] == "/"] + [len(path)]:
            node = nodes.get(path[:at])
            if node is None or _is_branch(node) or not node.label:
                continue
            name = self.name(node)
            if names and name.startswith(names[-1]):
                names.pop()
            names.append(name)
        return names


def _focus_of(form: Form) -> str | None:
    """Return the path of the control that gets the focus: the first one in the place an operation was
    about."""
    if form.focus is None:
        return None
    node = next((node for node in walk(form.tree.root) if node.path == form.focus), None)
    if node is not None and form.focus.rpartition("/")[2].startswith("n") and _is_map_item(form, node):
        return f"{node.path}#key"
    while (
        node is not None and node.state is State.VALUE and isinstance(node, Group | Union) and node.children
    ):
        node = next((child for child in node.children if not isinstance(child, Fixed)), node.children[0])
    return None if node is None else node.path


def _is_map_item(form: Form, node: Node) -> bool:
    above = node.path.rpartition("/")[0]
    return any(isinstance(parent, Mapping) and parent.path == above for parent in walk(form.tree.root))


def _is_wrapper_constant(child: Node, parent: Group) -> bool:
    return isinstance(child, Fixed) and child.required and (parent.path == "" or child.key == "name")


def _is_branch(node: Node) -> bool:
    return re.search(r"/~\d+$", node.path) is not None


def _is_labelable(node: Node) -> bool:
    if isinstance(node, Choice):
        return not _fits_segments([_option(option, node) for option in node.options]) or _is_foreign(node)
    return isinstance(node, Entry | Raw)


def _is_one_line(node: Node) -> bool:
    if node.states != (State.VALUE,):
        return False
    if isinstance(node, Entry):
        return _input_kind(node, node.text or "") != "block"
    return isinstance(node, Choice | Fixed)


def _input_kind(node: Entry, text: str) -> str:
    """Return "block" for a text area, "date" for a date picker, else "text"."""
    if node.kind != "string":
        return "text"
    if node.schema.get("format") == "date" and _DATE.fullmatch(text):
        return "date"
    longest = node.schema.get("maxLength")
    roomy = isinstance(longest, int) and longest > 200
    prose = isinstance(node.key, str) and node.key.lower() in _PROSE and "format" not in node.schema
    return "block" if "\n" in text or len(text) > _LONG_LINE or roomy or prose else "text"


def _fits_segments(labels: Sequence[str]) -> bool:
    return len(labels) <= _MOST_SEGMENTS and sum(map(len, labels)) <= _LONGEST_SEGMENTS


def _is_foreign(node: Choice) -> bool:
    """Say whether the agent's value is none of the options."""
    return node.given and all(
        node.original != option or type(node.original) is not type(option) for option in node.options
    )


def _option(option: Json, node: Choice | None) -> str:
    if isinstance(option, bool) and node is not None and node.is_boolean:
        return gettext("Yes") if option else gettext("No")
    return (
        unicode.visible(option)
        if isinstance(option, str) and option.strip()
        else json_text(option, indent=None)
    )


def _branch_labels(branches: Sequence[Branch]) -> list[str]:
    labels = [
        unicode.visible(branch.label) or str(words.KINDS.get(branch.kind, words.KINDS[""]))
        for branch in branches
    ]
    return [
        f"{label} {labels[: at + 1].count(label)}" if labels.count(label) > 1 else label
        for at, label in enumerate(labels)
    ]


def _was(node: Node) -> SafeString:
    if node.original is MISSING:
        return visible(gettext("not sent"))
    value = node.original
    text = value if isinstance(value, str) and value else json_text(value, indent=None)
    return visible(text if len(text) <= _LONGEST_WAS else text[:_LONGEST_WAS] + "…")


def _hidden(text: str) -> dict[str, Any] | None:
    """Return the text with its hidden characters shown, where it has any: a text field cannot show them."""
    count = sum(1 for run in unicode.runs(text) if run.glyph)
    return {"count": count, "text": visible(text)} if count else None


def _joined(parts: Iterator[SafeString] | Sequence[SafeString | str]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))
