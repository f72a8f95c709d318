"""Reading pages as tests do: no inline style or script, what a person would find, which buttons there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Protocol

VOID = {
    "area",
    "base",
    "br",
    "col",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "wbr",
    "path",
    "rect",
    "circle",
}
QUIET = {"script", "style", "template"}


class Answer(Protocol):
    """A response that holds a page."""

    @property
    def content(self) -> bytes: ...


@dataclass(frozen=True)
class Element:
    """One start tag with its attributes."""

    tag: str
    attributes: dict[str, str]


@dataclass
class Markup(HTMLParser):
    """The elements and the text of a page."""

    source: str
    elements: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    inline: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._inside: list[str] = []
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element; an inline style or handler is a complaint."""
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append(Element(tag, attributes))
        bad = [name for name in attributes if name == "style" or name.startswith(("on", "hx-on"))]
        self.inline += [f"<{tag} {name}>" for name in bad]
        if tag not in VOID:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Note text; text inside script or style is a complaint."""
        if not data.strip():
            return
        if self._inside and self._inside[-1] in QUIET:
            self.inline.append(f"text in <{self._inside[-1]}>: {data.strip()[:40]}")
            return
        self.words.append(data.strip())

    @property
    def text(self) -> str:
        """Everything a person would read, in one line."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Return the elements with these attributes; underscores stand for dashes."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.elements
            if (not tag or element.tag == tag)
            and all(element.attributes.get(name) == value for name, value in wanted.items())
        ]

    def has(self, name: str) -> bool:
        """Say whether any element has the attribute."""
        return any(name in element.attributes for element in self.elements)

    def values(self, name: str) -> list[str]:
        """Return every value of an attribute."""
        return [element.attributes[name] for element in self.elements if name in element.attributes]


def read(response: Answer) -> Markup:
    """Read a response's page."""
    return Markup(response.content.decode())
