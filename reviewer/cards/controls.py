"""The control of each kind of field: inputs, lists of choices, items, maps, unions, JSON.

What stands around a control (label, switch, errors) is the page's part: see ``Fields``, which ``paint``
fulfils.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from reviewer.cards import words
from reviewer.cards.draw import draw
from reviewer.cards.errors import FieldError
from reviewer.cards.looks import (
    branch_labels,
    fits_segments,
    hidden,
    input_kind,
    is_foreign,
    is_one_line,
    joined,
    name_of,
    option_labels,
    option_text,
)
from reviewer.cards.names import BRANCH, ITEMS, KEY, VALUE, html_id, part_of
from reviewer.cards.tree import (
    Choice,
    Entry,
    Fixed,
    Group,
    Item,
    Items,
    Mapping,
    Multi,
    Node,
    Raw,
    State,
    Union,
    walk,
)
from reviewer.cards.values import json_text
from reviewer.cards.visible import visible

_SHORT: Final = 12
_MOST_ROWS: Final = 14


class Fields(Protocol):
    """What a control needs from the form it stands in."""

    focus: str | None
    form_id: str
    errors: dict[str, list[FieldError]]

    def field(self, node: Node) -> SafeString: ...
    def control(self, node: Node, *, name: str = "") -> SafeString: ...
    def carried(self, node: Node) -> SafeString: ...
    def aria(self, node: Node, name: str) -> dict[str, Any]: ...
    def id(self, node: Node) -> str: ...
    def state(self, node: Node) -> SafeString | None: ...
    def unsent(self, node: Node, *, name: str = "") -> SafeString: ...
    def error_texts(self, node: Node) -> list[SafeString]: ...
    def cover(self, node: Node) -> str | None: ...


class Controls:
    """Draws controls for one form."""

    def __init__(self, page: Fields) -> None:
        self.page = page

    def control(self, node: Node, name: str) -> SafeString:
        """Return the control of a node; ``name`` labels it where no label element does."""
        match node:
            case Entry():
                return self.entry(node, name)
            case Choice():
                return self.choice(node, name)
            case Multi():
                return self.multi(node)
            case Fixed():
                text = node.value if isinstance(node.value, str) else json_text(node.value)
                return draw("fixed", text=visible(text))
            case Raw():
                return self.raw(node, name)
            case Group():
                return self.group(node)
            case Items():
                return self.items(node)
            case Mapping():
                return self.mapping(node)
            case Union():
                return self.union(node)
        return joined([])

    def entry(self, node: Entry, name: str) -> SafeString:
        text = node.text or ""
        form = node.schema.get("format")
        kind, cover = input_kind(node, text), self.page.cover(node)
        return draw(
            "entry",
            kind=kind,  # never "password": a password manager would write over the proposal
            name=VALUE + node.path,
            text=text,
            cover=cover,
            uncover=f"uncover:{node.path}",
            field=name_of(node),
            rows=min(_MOST_ROWS, max(3, text.count("\n") + 2 + len(text) // 90)),
            mode={"integer": "numeric", "number": "decimal"}.get(
                node.kind, {"email": "email", "uri": "url"}.get(str(form), "")
            ),
            is_short=node.kind != "string" and len(text) <= _SHORT,
            is_mono=form in {"uuid", "uri", "date-time", "time", "duration", "binary"},
            example=self.example(node) if kind == "text" and not text else "",
            hidden=None if cover == "covered" else hidden(text),
            **self.page.aria(node, name),
        )

    def example(self, node: Entry) -> str:
        return words.EXAMPLES.get(str(node.schema.get("format")), "") or words.pattern_example(node.schema)

    def choice(self, node: Choice, name: str) -> SafeString:
        options: list[dict[str, Any]] = [
            {"value": str(at), "label": label, "checked": node.picked == str(at)}
            for at, label in enumerate(option_labels(node.options, node))
        ]
        current = node.given and node.picked == Choice.CURRENT
        if node.given and (current or is_foreign(node)):
            told = gettext("%(value)s (the agent’s, not allowed)") % {
                "value": option_text(node.original, node)
            }
            options.append({"value": Choice.CURRENT, "label": told, "checked": current})
        return draw(
            "choice",
            name=VALUE + node.path,
            options=options,
            segments=fits_segments([option["label"] for option in options]),
            unset=node.picked == "",
            labelled=f"{self.page.id(node)}-l",
            **self.page.aria(node, name),
        )

    def multi(self, node: Multi) -> SafeString:
        options = [
            {"value": str(index), "label": label, "checked": index in node.picked}
            for index, label in enumerate(option_labels(node.options, None))
        ]
        return draw("multi", name=VALUE + node.path, options=options, **self.page.aria(node, ""))

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
            cover=self.page.cover(node),
            uncover=f"uncover:{node.path}",
            field=name_of(node),
            rows=min(_MOST_ROWS, max(3, node.text.count("\n") + 2)),
            reason=words.reason_text(node),
            is_warning=node.reason in {"misfit", "not-allowed", "nothing-fits"},
            operation=f"{operation}:{node.path}" if operation and node.can_draw else "",
            operation_label=label,
            **self.page.aria(node, name),
        )

    def group(self, node: Group) -> SafeString:
        return draw("group", fields=joined(self.fields(node, None)) or draw("nothing"))

    def fields(self, node: Group, tag: str | None) -> Iterator[SafeString]:
        for child in node.children:
            if not (isinstance(child, Fixed) and child.key == tag and child.required):
                yield self.page.field(child)

    def items(self, node: Items) -> SafeString:
        count = len(node.items)
        drawn = [self.item(node, item, at, count) for at, item in enumerate(node.items)]
        return draw(
            "items",
            name=ITEMS + node.path,
            items=drawn,
            fixed=node.fixed,
            field=name_of(node),
            operation=f"add:{node.path}",
            focus=self.page.focus == node.path,
        )

    def item(self, parent: Items, item: Item, at: int, count: int) -> SafeString:
        node = item.node
        name = name_of(node)
        inline = self.inline(node, name)
        return draw(
            "item",
            id=item.id,
            list_name="" if parent.fixed else ITEMS + parent.path,
            inline=inline,
            block=None if inline else self.block(node),
            name=name,
            anchor=self.anchor(node),
            path=node.path,
            number=at + 1,
            first=at == 0,
            last=at == count - 1,
            focus=self.moved(node.path, first=at == 0, last=at == count - 1),
            fixed=parent.fixed,
            added=item.id.startswith("n"),
            errors=self.inline_errors(node) if inline else [],
        )

    def moved(self, path: str, *, first: bool, last: bool) -> str:
        """Return which button of an item keeps the focus: the one that moved it, while it can be pressed."""
        pressed = next((way for way in ("up", "down") if self.page.focus == part_of(path, way)), "")
        if pressed == "up" and first:
            return "down"
        return "up" if pressed == "down" and last else pressed

    def inline(self, node: Node, name: str) -> list[SafeString]:
        """Return one or two controls that fit on one line, or nothing where an item needs more room."""
        if is_one_line(node):
            return [self.page.control(node, name=name)]
        if not isinstance(node, Group) or node.extra is not None or len(node.fields) != 2:
            return []
        if not all(map(is_one_line, node.fields)):
            return []
        first, second = (self.page.control(field, name=f"{name}, {name_of(field)}") for field in node.fields)
        return [joined([self.page.carried(node), first]), second]

    def anchor(self, node: Node) -> str:
        """Return the id that the summary of errors links to, where no control of its own has it."""
        return "" if isinstance(node, Entry | Raw | Choice) else self.page.id(node)

    def inline_errors(self, node: Node) -> list[dict[str, Any]]:
        return [
            {"id": f"{self.page.id(part)}-e", "text": joined(texts)}
            for part in walk(node)
            if (texts := self.page.error_texts(part))
        ]

    def block(self, node: Node) -> SafeString:
        """Return an item that needs a block of its own, with its switch, control and errors."""
        if isinstance(node, Group) and node.states == (State.VALUE,):
            fields = joined(self.fields(node, None)) or draw("nothing")
            return draw(
                "block",
                body=joined([self.page.carried(node), fields]),
                errors=self.page.error_texts(node),
                id=self.page.id(node),
            )
        control = (
            self.page.control(node, name=name_of(node))
            if node.state is State.VALUE
            else self.page.unsent(node, name=name_of(node))
        )
        return draw(
            "block",
            body=format_html('<div class="field__control">{}</div>', control),
            state=self.page.state(node),
            errors=self.page.error_texts(node),
            id=self.page.id(node),
        )

    def mapping(self, node: Mapping) -> SafeString:
        drawn = [self.entry_of(node, item) for item in node.items]
        return draw(
            "mapping",
            name=ITEMS + node.path,
            items=drawn,
            field=name_of(node),
            operation=f"add:{node.path}",
            focus=self.page.focus == node.path,
        )

    def entry_of(self, parent: Mapping, item: Item) -> SafeString:
        node = item.node
        name, place = name_of(node), part_of(node.path, "key")
        inline = (
            self.page.control(node, name=gettext("%(name)s, value") % {"name": name})
            if is_one_line(node)
            else None
        )
        return draw(
            "pair",
            id=item.id,
            list_name=ITEMS + parent.path,
            key_name=KEY + node.path,
            key=item.key,
            key_id=html_id(self.page.form_id, place),
            key_label=gettext("%(name)s, key") % {"name": name},
            key_errors=[words.error_text(error) for error in self.page.errors.get(place, ())],
            inline=inline,
            block=None if inline else self.block(node),
            name=name,
            path=node.path,
            anchor=self.anchor(node),
            added=item.id.startswith("n"),
            errors=self.inline_errors(node) if inline else [],
            focus=self.page.focus == place,
        )

    def union(self, node: Union) -> SafeString:
        labels = branch_labels(node.branches)
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
            segments=fits_segments(labels),
            label=gettext("Kind of %(name)s") % {"name": name_of(node)},
            inner=inner,
            is_line=is_line,
            is_whole=not node.path,
            put_away=[self.page.control(branch) for branch in left],
            **self.page.aria(node, ""),
        )

    def branch(self, node: Union) -> tuple[SafeString, bool]:
        """Return the fields of the chosen kind, and whether they fit beside the switch."""
        chosen = node.branch
        if chosen is None:
            return joined([]), False
        if isinstance(chosen, Group):
            fields = joined([self.page.carried(chosen), *self.fields(chosen, node.tag)])
            return self.part(chosen, fields), False
        control = self.page.control(chosen, name=name_of(node))
        return self.part(chosen, control), is_one_line(chosen)

    def part(self, node: Node, body: SafeString) -> SafeString:
        """Return the inside of a union with its own errors."""
        return draw(
            "part",
            body=body,
            anchor=self.anchor(node),
            id=self.page.id(node),
            errors=self.page.error_texts(node),
        )
