"""A drawing of one's own for one's own kind of payload: a function that knows it, and a template beside it.

A renderer draws in place of the rows it names, and can hide nothing: every row stays on the card as data,
with its hidden characters marked, its secrets masked and its long parts folded. What it is given holds the
same marks and masks already; what it draws is sanitised, so that it cannot reach beyond its own place. One
that fails leaves the standard card, with a note.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final

import nh3
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Engine, Template
from django.utils.safestring import SafeString, mark_safe

from reviewer.cards.card import CardRequest
from reviewer.cards.names import pointer_step
from reviewer.cards.secrets import MASK, is_masked
from reviewer.cards.values import Json
from reviewer.cards.visible import visible

Found = bool | Mapping[str, Json]
Matcher = Callable[[CardRequest], Found]

_LOG: Final = logging.getLogger(__name__)
_TAGS: Final = frozenset(
    (
        "abbr", "b", "blockquote", "br", "caption", "cite", "code", "dd", "del", "details", "div", "dl",
        "dt", "em", "h4", "h5", "hr", "i", "ins", "li", "mark", "ol", "p", "pre",
        "q", "s", "section", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td",
        "tfoot", "th", "thead", "time", "tr", "u", "ul",
    )
)  # fmt: skip
_ATTRIBUTES: Final = {
    "*": {"class", "dir", "lang", "title"},
    "details": {"open"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
_registered: list[Renderer] = []


@dataclass(frozen=True)
class Renderer:
    """One way to draw one kind of payload.

    ``shows`` are JSON Pointers to the parts that it draws. ``made_of`` is its source: another source, another
    drawing; "" for those of this room, which change with its version. ``draw`` takes the request, what
    ``matches`` found, and the pointers that are masked.
    """

    name: str
    matches: Matcher
    draw: Callable[[CardRequest, Found, frozenset[str]], SafeString]
    shows: tuple[str, ...]
    made_of: str = ""


@dataclass(frozen=True)
class Drawn:
    """What a renderer drew, or that it ``failed``: its name then is all there is."""

    name: str
    html: SafeString | None = None
    shows: tuple[str, ...] = ()
    failed: bool = False

    def covers(self, pointer: str) -> bool:
        """Say whether a row is among what was drawn."""
        return any(f"{pointer}/".startswith(f"{shown}/") for shown in self.shows)


def renderer(template: str, *, shows: Sequence[str] = ("",)) -> Callable[[Matcher], Matcher]:
    """Register a template for the payloads that the decorated function knows.

    The function gets a copy of the ``CardRequest``. It returns True, or a mapping of further variables for
    the template, or False where the payload is of another kind; the first renderer that matches draws.
    ``template`` lies beside the function's file and gets ``payload``. ``shows`` are JSON Pointers to the
    parts of the payload that it draws; "" is all of it.
    """

    def register(matches: Matcher) -> Matcher:
        folder = Path(inspect.getfile(matches)).parent
        found = Engine(dirs=[str(folder)], builtins=["django.templatetags.i18n"]).get_template(template)
        name = getattr(matches, "__name__", template)
        made_of = "\n".join((name, *shows, str(found.source)))
        add(Renderer(name, matches, partial(_from_template, found), tuple(shows), made_of))
        return matches

    return register


def add(one: Renderer) -> None:
    """Register a renderer; one of the same name is replaced."""
    remove(one.name)
    _registered.append(one)


def remove(name: str) -> None:
    """Forget a renderer."""
    _registered[:] = [known for known in _registered if known.name != name]


def load(paths: Sequence[str]) -> None:
    """Run the files that register renderers; raise ``ImproperlyConfigured`` with one line where one fails."""
    for number, path in enumerate(paths):
        spec = spec_from_file_location(f"countersign_cards_{number}", path)
        if spec is None or spec.loader is None or not Path(path).is_file():
            raise ImproperlyConfigured(f"COUNTERSIGN_CARDS names {path}, which is not a Python file.")
        try:
            spec.loader.exec_module(module_from_spec(spec))
        except Exception as problem:  # whatever an author's file raises
            told = f"{type(problem).__name__}: {problem}"
            raise ImproperlyConfigured(f"COUNTERSIGN_CARDS: {path} does not load: {told}") from problem


def drawn(request: CardRequest, concealed: Collection[str] = ()) -> Drawn | None:
    """Return what a renderer makes of a payload, or None where none knows it.

    ``concealed`` are the pointers that are masked from this reader.
    """
    one = _renderer_of(request)
    if one is None:
        return None
    try:
        html = one.draw(request, _matches(one, request), frozenset(concealed))
    except Exception:  # noqa: BLE001  an author's code; the standard card is always there
        _LOG.exception("The renderer %s failed", one.name)
        return Drawn(one.name, failed=True)
    return Drawn(one.name, html, one.shows)


def source_of(request: CardRequest) -> str:
    """Return what the renderer of a payload is made of; "" where the card is drawn by this room alone."""
    if not any(one.made_of for one in _registered):
        return ""
    one = _renderer_of(request)
    return one.made_of if one else ""


def _renderer_of(request: CardRequest) -> Renderer | None:
    """Return the first renderer that knows a payload, an author's before ours, or that fails to say so."""
    for one in sorted(_registered, key=lambda one: not one.made_of):
        try:
            if _matches(one, request):
                return one
        except Exception:  # noqa: BLE001  ``drawn`` asks it once more, and tells
            return one
    return None


def _matches(one: Renderer, request: CardRequest) -> Found:
    """Ask a renderer; an author's function gets a copy, so that it cannot change what is decided on."""
    return one.matches(copy.deepcopy(request) if one.made_of else request)


def _from_template(
    template: Template, request: CardRequest, found: Found, concealed: frozenset[str]
) -> SafeString:
    extra = found if isinstance(found, Mapping) else {}
    told = {key: _marked(value, "", frozenset()) for key, value in extra.items()}
    payload = _marked(request.args, "", concealed)
    return _sanitised(template.render(Context({**told, "payload": payload}, use_l10n=False)))


def _marked(value: Json, pointer: str, concealed: frozenset[str]) -> Json:
    """Return a payload whose texts are safe HTML: escaped, hidden characters marked, secrets masked."""
    if pointer in concealed and not isinstance(value, dict | list):
        return MASK if is_masked(value) else value
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        inside = _inside(concealed, pointer, range(len(value)))
        return [_marked(item, f"{pointer}/{at}", inside) for at, item in enumerate(value)]
    if isinstance(value, dict):
        inside = _inside(concealed, pointer, map(pointer_step, value))
        return {
            str(visible(key)): _marked(item, f"{pointer}/{pointer_step(key)}", inside)
            for key, item in value.items()
        }
    return value


def _inside(concealed: frozenset[str], pointer: str, steps: Iterable[object]) -> frozenset[str]:
    """Return the concealed places; where a whole container is one, each of its parts is."""
    return concealed if pointer not in concealed else concealed.union(f"{pointer}/{step}" for step in steps)


def _sanitised(html: str) -> SafeString:
    clean = nh3.clean(html, tags=set(_TAGS), attributes=_ATTRIBUTES, url_schemes=set(), link_rel=None)
    return mark_safe(clean)  # noqa: S308  cleaned in the line above
