"""A browser's part in a form, after the HTML standard: which fields a page posts, and what becomes of their
text.

No script runs here. What a real browser does beyond this is tested in ``test_in_browser``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"input", "use", "br", "hr", "img", "meta", "link"}


@dataclass
class Control:
    """One control of a page, with what it would send."""

    tag: str
    attrs: dict[str, str | None]
    value: str = ""
    options: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.attrs.get("name") or ""

    @property
    def type(self) -> str:
        return self.attrs.get("type") or "text"


class Page(HTMLParser):
    """A parsed page; ``post`` gives what the browser would send."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.controls: list[Control] = []
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.text: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._textarea: Control | None = None
        self.feed(html.replace("\r\n", "\n").replace("\r", "\n"))
        self.close()
        assert not self.stack, f"not closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"an attribute twice: {attrs}"
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"] or "")
        if tag == "label" and found.get("for"):
            self.labels.add(found["for"] or "")
        if tag == "input":
            self.controls.append(Control(tag, found, found.get("value") or ""))
        elif tag in {"textarea", "select", "button"}:
            self.controls.append(Control(tag, found, found.get("value") or ""))
            self._textarea = self.controls[-1] if tag == "textarea" else None
        elif tag == "option":
            self.controls[-1].options.append((found.get("value") or "", "selected" in found))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.stack[-1:] == [tag], f"</{tag}> closes {self.stack[-3:]}"
        self.stack.pop()
        if tag == "textarea" and self._textarea is not None:
            self._textarea.value = self._textarea.value.removeprefix("\n")
            self._textarea = None

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._textarea.value += data
        else:
            self.text.append(data)

    def post(self, button: str | None = None, **changes: str) -> dict[str, list[str]]:
        """Return the fields that pressing a button sends; ``button`` is the value of an ``_op``."""
        return self.post_with(button, changes)

    def post_with(self, button: str | None, changes: dict[str, str]) -> dict[str, list[str]]:
        posted: dict[str, list[str]] = {}
        pressed = False
        for control in self.controls:
            if not control.name or "disabled" in control.attrs:
                continue
            value = self._sent(control, changes)
            if control.tag == "button":
                if control.name == "_op" and control.value == button and not pressed:
                    posted.setdefault(control.name, []).append(control.value)
                    pressed = True
                continue
            if value is not None:
                posted.setdefault(control.name, []).append(re.sub(r"\r\n|\r|\n", "\r\n", value))
        assert button is None or pressed, f"no button {button!r}"
        return posted

    def _sent(self, control: Control, changes: dict[str, str]) -> str | None:
        changed = changes.get(control.name)
        if control.tag == "select":
            if changed is not None:
                assert changed in [value for value, _ in control.options], f"no option {changed}"
                return changed
            chosen = [value for value, selected in control.options if selected]
            return chosen[-1] if chosen else control.options[0][0]
        if control.type in {"radio", "checkbox"}:
            checked = "checked" in control.attrs if changed is None else control.value == changed
            return control.value if checked else None
        value = control.value if changed is None or control.type == "hidden" else changed
        return re.sub(r"[\r\n]", "", value) if control.tag == "input" and control.type != "hidden" else value

    def buttons(self) -> list[str]:
        """Return the operations that can be pressed."""
        return [
            control.value
            for control in self.controls
            if control.tag == "button" and control.name == "_op" and "disabled" not in control.attrs
        ]


class Post(dict[str, list[str]]):
    """Posted fields as Django hands them on."""

    def getlist(self, name: str, /) -> list[str]:
        return self.get(name, [])
