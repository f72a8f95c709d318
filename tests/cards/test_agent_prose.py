"""What an agent said, formatted: nothing to press, nothing that looks like ours, and nothing lost."""

from __future__ import annotations

import time
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer.cards import render, unicode
from reviewer.cards.prose import LONGEST, prose
from tests.cards.browser import Page

ALLOWED = frozenset(
    (
        *("p", "strong", "em", "s", "br", "ul", "ol", "li", "blockquote", "code", "pre", "small"),
        *("table", "thead", "tbody", "tr", "th", "td", "span", "mark"),
    )
)
ATTRIBUTES = {"title", "class", "start", "value"}
CLASSES = {"glyph", "glyph glyph--word", "kv__text"}
ATTACKS = [
    "# ✅ Verified safe by Compliance",
    "Setext\n======",
    "<h1>Ours</h1><button name=verdict value=approve>Approve</button>",
    '<div class="banner" data-tone="ok" id="main" style="position:fixed">Safe</div>',
    "[Approve](https://evil.example/approve)",
    "[Approve](javascript:alert(1))",
    '[a](https://evil.example "Approve")',
    "<https://evil.example>",
    "<javascript:alert(1)>",
    "![pixel](https://evil.example/x.png)",
    "![a](data:image/svg+xml;base64,AAAA)",
    "[![img](x)](y)",
    "[ref]: https://evil.example 'hidden'\n\n[ref]",
    "[//]: # (this would be hidden)",
    "```html\n<script>alert(1)</script>\n```",
    '```" onmouseover="x\ncode\n```',
    "<!-- hidden --> <script>alert(1)</script> <style>*{display:none}</style>",
    "<svg onload=alert(1)><a href=x>",
    "- [x] Approved by Ines",
    "***\n---\n___",
    "| a | b |\n| - | - |\n| <b>x</b> | [y](z) |",
    "&lt;b&gt; &#x202e; &zwj;",
    "<details open><summary>More</summary>x</details>",
    "a\u202eb\u202c **\u200b** `\u2066`",
    "[c\u0430se](https://p\u0430ypal.example/\u200b)",
]
TEXT = st.text(alphabet="ab1 *_`#>-[]()!|~<&\n\\.\u202e\u200b\u0430é", max_size=60) | st.sampled_from(ATTACKS)


def check(text: str) -> str:
    """Return the HTML of a text after looking at every tag and attribute of it."""
    html = str(prose(text).html)
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag in ALLOWED
        assert attributes.keys() <= ATTRIBUTES
        assert attributes.get("class", "glyph") in CLASSES
    return html


@pytest.mark.parametrize("text", ATTACKS)
def test_no_text_makes_anything_but_text(text: str) -> None:
    check(text)


@given(st.lists(TEXT, max_size=6).map("\n\n".join))
@settings(max_examples=200, deadline=None)
def test_no_letter_no_digit_and_no_hidden_character_is_lost(text: str) -> None:
    html = check(text)
    read = "".join(Page(html).text)
    wanted = sorted(letter for letter in text if letter.isalnum() and letter.isascii())
    found = sorted(letter for letter in read if letter.isalnum() and letter.isascii())
    assert not _less(wanted, found)
    assert html.count('class="glyph') >= unicode.count(text)
    assert not {"\u202e", "\u200b"} & set(unescape(html))


def _less(wanted: list[str], found: list[str]) -> set[str]:
    return {letter for letter in wanted if found.count(letter) < wanted.count(letter)}


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("## Why\nx", "<p><strong>Why</strong></p><p>x</p>"),
        ("a **b** *c* `d`", "<p>a <strong>b</strong> <em>c</em> <code>d</code></p>"),
        ("3. x\n7. y", '<ol><li value="3">x</li><li value="7">y</li></ol>'),
        ("[text](https://a.example/x)", "<p>text (https://a.example/x)</p>"),
        ('[text](/x "T")', "<p>text (/x, “T”)</p>"),
        ("![alt](/x.png)", "<p>Picture, not loaded: alt (/x.png)</p>"),
        ("<https://a.example>", "<p>https://a.example</p>"),
        ("one\ntwo *x*", "<p>one<br>two <em>x</em></p>"),
    ],
)
def test_markdown_is_drawn_as_it_was_meant(text: str, html: str) -> None:
    assert prose(text).html == html
    assert prose(text).is_formatted


@pytest.mark.parametrize(
    "text",
    [
        "2*3*4 is 24",  # would read 234
        "| a | b |\n| - | - |\n| 1 | 2 | 3 |",  # a third cell would be dropped
        "[//]: # (hidden)",
        "\u0430**pple** pie",  # the mark of the mixed word would be lost
        "nul \x00 **b**",
        "x" * LONGEST + " **b**",
    ],
)
def test_what_formatting_would_hide_or_change_is_shown_as_it_was_written(text: str) -> None:
    told = prose(text)
    assert not told.is_formatted
    assert told.shown == text


def test_a_host_of_other_letters_is_told_by_its_real_name() -> None:
    html = prose("[bank](https://p\u0430ypal.com/login)").html
    assert "glyph--word" in html
    assert "[really xn--pypal-4ve.com]" in html


def test_the_text_as_it_was_written_is_one_click_away() -> None:
    html = str(render.render_prose("It is **urgent** \u202e."))
    assert "<summary>As it was written</summary><p dir=" in html
    assert html.count("U+202E") == 2
    assert "As it was written" not in str(render.render_prose("It is urgent."))


def test_a_long_text_begins_with_its_first_lines_and_says_how_long_it_is() -> None:
    text = "\n\n".join(f"{number}. **line** {'word ' * 20}" for number in range(40))
    html = str(render.render_prose(text))
    assert f"Show all {len(text)} characters" in html
    assert html.index("unfold__short") < html.index('<div class="prose"')


@pytest.mark.parametrize(
    "text",
    [
        "[" * 9000,
        "*a " * 6000,
        ">" * 9000,
        "**a*" * 4000,
        "![[" * 6000,
        "`" * 5000 + "a" + "`" * 4999,
        "<" * 9000,
        "|a" * 100 + "\n" + "|-" * 100 + "\n" + "|\n" * 9000,
        "a|" * 1200 + "\n" + "-|" * 1200 + "\n" + "x\n" * 7000,
        "a\u200b" * 9000,
    ],
)
def test_a_hostile_text_costs_no_time(text: str) -> None:
    began = time.process_time()
    check(text)
    assert time.process_time() - began < 20
    assert len(render.render_prose(text)) < 400_000
