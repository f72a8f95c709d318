"""Patterns in words: an example always fits, and what has no words is never guessed at."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer import cards
from reviewer.cards import render
from reviewer.cards.patterns import form_of
from tests.cards.making import Reviewer


@pytest.mark.parametrize(
    ("pattern", "words", "example"),
    [
        (r"^[A-Z]{3}-\d{6}$", "3 capital letters, then “-”, then 6 digits", "ABC-123456"),
        (r"^\d+\.\d{2}$", "1 or more digits, then “.”, then 2 digits", "123.12"),
        ("^(EUR|USD)$", "“EUR” or “USD”", "EUR"),
        (r"^\+?[0-9]{7,15}$", "perhaps “+”, then 7 to 15 digits", "1234567"),
        ("^[a-z][a-z0-9-]{0,62}$", "1 small letter, then 0 to 62 small letters, digits or -", "aa1b"),
        ("^#[0-9a-fA-F]{6}$", "“#”, then 6 digits or a to f", "#1a2b3c"),
        ("^v?[0-9]+$", "perhaps “v”, then 1 or more digits", "123"),
    ],
)
def test_common_patterns_are_told_in_words_with_an_example(pattern: str, words: str, example: str) -> None:
    form = form_of(pattern)
    assert form is not None
    assert (form.words, form.example) == (words, example)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            "x",
            "^$",
            "^(a+)+$",
            "^[^a]$",
            "^.*$",
            "^a|b$",
            "^(?=a)b$",
            "^[$",
            "^{$",
            "^\\$",
            "^[a-z]{9999}$",
        ),
        *(
            "^[a-z]+?$",
            "^a$$",
            "^\\p{L}+$",
            "^(a|b{2})$",
            "^a{0}$",
            "^(a$",
            "^[\\w.]+@[\\w.]+$",
            "^" + "a?" * 300 + "$",
        ),
    ],
)
def test_what_has_no_words_is_not_guessed_at(pattern: str) -> None:
    assert form_of(pattern) is None


@given(st.text(alphabet="^$[]{}()|?*+.\\-,:019adwzAZ_#", max_size=14))
@settings(max_examples=400, deadline=None)
def test_no_pattern_breaks_the_reading_and_every_example_fits(inside: str) -> None:
    pattern = f"^{inside}$"
    form = form_of(pattern)
    if form is not None and form.example:
        assert jsonschema_rs.is_valid({"type": "string", "pattern": pattern}, form.example)


SCHEMA = {
    "type": "object",
    "properties": {
        "order": {"type": "string", "pattern": r"^[A-Z]{3}-\d{6}$"},
        "odd": {"type": "string", "pattern": "^(?=.*x).*$"},
    },
    "required": ["order"],
}


def test_an_error_says_the_form_in_words_and_the_pattern_in_second_place() -> None:
    reviewer = Reviewer.before(SCHEMA, {"order": "ABC-123456", "odd": "x"})
    reviewer.send(**{"v:/order": "12", "v:/odd": "y"})
    text = " ".join(reviewer.page.text)
    assert "Enter 3 capital letters, then “-”, then 6 digits, such as ABC-123456" in text
    assert "This does not have the form that the agent asks for" in text
    assert "must match" not in text
    assert r" <code>^[A-Z]{3}-\d{6}$</code></p>" in reviewer.html
    summary = reviewer.html.split('<div class="form"')[0]
    assert "[A-Z]" not in summary


def test_the_agents_own_check_of_a_pattern_is_told_in_the_same_words() -> None:
    form = cards.build_input_form(SCHEMA, form_id="f", initial={"order": "12"})
    problem = {"loc": ["order"], "msg": r"String should match pattern '^[A-Z]{3}-\d{6}$'", "type": "refused"}
    errors = cards.place_errors(form, [problem])
    html = str(render.render_form(form, errors))
    assert "Enter 3 capital letters" in html
    assert "String should match" not in html


def test_an_empty_field_shows_what_a_right_text_looks_like() -> None:
    assert "As in ABC-123456" in " ".join(Reviewer.before(SCHEMA).page.text)
