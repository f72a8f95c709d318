"""A developer's own drawing of a card: a function and a template. It adds to it and can hide nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from reviewer import cards
from reviewer.cards import render, renderers
from reviewer.cards.version import RENDERER_VERSION, version_of
from tests.cards.browser import Page
from tests.cards.making import tool_card

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
PAYOUT = {
    "lines": [{"supplier": "Acme", "amount": "12.50"}, {"supplier": "Bolt \u202eevil", "amount": "7.00"}],
    "total": "19.50",
    "iban": "DE89 3704",
    "api_key": "sk-live-123",
}
AUTHORS_FILE = """
from reviewer.cards import CardRequest, renderer

@renderer("own.html", shows={shows})
def {name}(request: CardRequest):
    {body}
"""

Author = Callable[..., None]


@pytest.fixture
def author(tmp_path: Path) -> Iterator[Author]:
    """Write a developer's file with its template and load it: ``author("<b>{{ payload.total }}</b>")``."""
    written: list[str] = []

    def write(template: str, *, body: str = "return True", shows: str = '["/total"]') -> None:
        name = f"own_{len(written)}"
        written.append(name)
        (tmp_path / "own.html").write_text(template)
        file = tmp_path / f"{name}.py"
        file.write_text(AUTHORS_FILE.format(name=name, body=body, shows=shows))
        renderers.load([str(file)])

    yield write
    for name in written:
        renderers.remove(name)


def arguments(value: Any = PAYOUT, **options: Any) -> str:
    return str(render.render_arguments(tool_card(True, value), **options))


def text_of(html: str) -> str:
    return " ".join(" ".join(Page(html).text).split())


def test_the_readmes_sample_draws_and_the_rest_stays_on_the_card(tmp_path: Path) -> None:
    section = README.split("## Your own kind of card")[1].split("\n## ")[0]
    code, template = (re.findall(rf"```{kind}\n(.*?)```", section, re.S)[0] for kind in ("python", "html"))
    (tmp_path / "cards.py").write_text(code)
    (tmp_path / "payout.html").write_text(template)
    renderers.load([str(tmp_path / "cards.py")])
    try:
        html = str(render.render_arguments(tool_card(True, PAYOUT, tool="pay_suppliers")))
        assert "<table><tbody><tr><td>Acme</td><td>12.50</td></tr>" in html
        assert "In total <strong>19.50</strong>" in html
        text = text_of(html)
        assert text.index("In total") < text.index("iban") < text.index("The same as data")
        assert text.index("The same as data") < text.index("supplier")
        assert "The same as data" not in text_of(arguments())
    finally:
        renderers.remove("payout")


def test_an_authors_drawing_has_the_marks_of_hidden_characters_and_so_has_the_data(author: Author) -> None:
    author("{% for line in payload.lines %}<p>{{ line.supplier }}</p>{% endfor %}", shows='["/lines"]')
    html = arguments()
    assert html.count("U+202E</span>") == 2
    assert "\u202e" not in html


def test_a_secret_is_masked_in_an_authors_drawing_until_its_reader_asks(author: Author) -> None:
    author("<p>{{ payload.api_key }}</p>", shows='["/api_key"]')
    assert "sk-live-123" not in arguments()
    assert arguments(expanded=["/api_key"]).count("sk-live-123") == 2


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ("{% for x in payload.lines %}{{ x|add:y.z|first }}{% endfor %}", "raise ValueError('no')"),
        ("<p></p>", "return request.args['missing']"),
        ("{% include 'missing.html' %}", "return True"),
    ],
)
def test_a_renderer_that_raises_leaves_the_standard_card_with_a_note(
    author: Author, template: str, body: str
) -> None:
    before = text_of(arguments())
    author(template, body=body)
    text = text_of(arguments())
    assert text.startswith("The drawing “own_0” failed, so this is the standard card.")
    assert text.endswith(before)


@pytest.mark.parametrize(
    "template",
    [
        "</div></section></form><div hidden>",
        '<div hidden style="display:none" id="main" onclick="x()">',
        "<form><button name=verdict value=approve>Approve</button></form>",
        '<script>alert(1)</script><iframe src="//x"></iframe><img src=x onerror=x>',
        "<svg><style>*{}</style></svg><style>*{display:none}</style>",
        '<!-- <a href="https://x">x</a>',
        "<textarea><plaintext>",
    ],
)
def test_an_authors_drawing_cannot_reach_beyond_its_place(author: Author, template: str) -> None:
    author(template)
    html = arguments()
    page = Page(html)  # checks that every element is closed
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "form", "button", "iframe", "img", "style", "textarea", "plaintext", "input"}
    attributes = {name for _, found in page.tags for name in found}
    assert not attributes & {"hidden", "style", "id", "onclick", "onerror", "src"}
    assert html.count('class="kv"') == 2
    assert "DE89 3704" in text_of(html)


def test_a_renderer_cannot_change_what_is_decided(author: Author) -> None:
    author("{{ payload.total }}", body="request.args.clear(); return True")
    card = tool_card(True, dict(PAYOUT))
    render.render_arguments(card)
    assert card.request.args == PAYOUT
    assert card.open("edit").choice.initial["edited_action"]["args"] == PAYOUT


def test_a_renderer_may_hand_its_template_more(author: Author) -> None:
    author("<p>{{ count }} lines, {{ note }}</p>", body="return {'count': 2, 'note': '<b>\\u200b'}")
    html = arguments()
    assert "<p>2 lines, &lt;b&gt;" in html
    assert "U+200B" in html


def test_another_template_is_another_version_of_the_drawing(author: Author) -> None:
    request = tool_card(True, PAYOUT).request
    assert version_of(request) == RENDERER_VERSION
    author("<p>one</p>")
    first = version_of(request)
    renderers.remove("own_0")
    author("<p>two</p>")
    assert len({RENDERER_VERSION, first, version_of(request)}) == 3


def test_what_still_has_to_be_opened_is_in_sight_where_an_author_draws(author: Author) -> None:
    author("<p>{{ payload.body|slice:':9' }}</p>", shows='["/body"]')
    html = arguments({"body": "long " * 200}, expand_url="?show=")
    assert '<details class="more own__same" open>' in html
    assert 'href="?show=%2Fbody"' in html
    assert '<details class="more own__same">' in arguments({"body": "short"})


@pytest.mark.parametrize("content", ["import nothing_like_this", "1 +", "raise SystemError('x')"])
def test_a_file_that_does_not_load_is_told_in_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(content)
    with pytest.raises(ImproperlyConfigured, match=r"broken\.py does not load: \w+: ") as told:
        renderers.load([str(file)])
    assert "\n" not in str(told.value).strip()


def test_a_file_that_is_not_there_is_told_in_one_line() -> None:
    with pytest.raises(ImproperlyConfigured, match="not a Python file"):
        renderers.load(["/nowhere/cards.py"])


def test_a_draft_is_drawn_as_the_text_it_becomes_and_a_tools_argument_never_is() -> None:
    text = "# Q3\n\nWe grew by **12 %**, see [more](https://example.org/q3)."
    value = {"draft": text, "channel": "blog"}
    html = str(render.render_arguments(cards.build(cards.CardRequest("t", "", value, True))))
    assert "<strong>12 %</strong>, see more (https://example.org/q3)" in html
    assert "<h1" not in html
    assert html.count("**12 %**") == 2  # as it was written, and as data
    assert "channel" in text_of(html)
    assert "<strong>" not in str(render.render_arguments(tool_card(True, value)))


def test_nothing_of_an_authors_file_stays_behind_in_the_modules() -> None:
    assert not [name for name in sys.modules if name.startswith("countersign_cards_")]
