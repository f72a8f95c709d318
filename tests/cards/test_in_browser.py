"""Forms in a real Chromium, under the strict policy of the real pages: what it posts, what runs, what the
keyboard can do.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.utils.html import format_html_join

from tests.cards.desk import Desk
from tests.cards.making import SAMPLES, Reviewer, card_of, schema_of, tool_card
from tests.cards.xss import XSS

AT = "/edited_action/args"
WITH_VALUE = {name: sample for name, sample in SAMPLES.items() if sample.get("initial") is not None}
FIELDS = "() => [...document.forms].map((form) => [...new FormData(form)])"

pytestmark = pytest.mark.browser


def test_chromium_posts_every_sample_back_untouched_without_a_script(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(java_script_enabled=False)
    for sample in WITH_VALUE.values():
        page = desk.open(Reviewer.before(schema_of(sample), sample["initial"]))
        page.click("[data-send]")
        assert json.dumps(desk.reading.answer) == json.dumps(sample["initial"])


def test_chromium_reads_every_sample_of_one_page_back_untouched(desk_of: Callable[..., Desk]) -> None:
    reviewers = [Reviewer.before(schema_of(sample), sample["initial"]) for sample in WITH_VALUE.values()]
    forms = format_html_join("", "<form>{}</form>", ((reviewer.html_safe,) for reviewer in reviewers))
    posted = desk_of().show(forms).evaluate(FIELDS)
    for reviewer, fields, sample in zip(reviewers, posted, WITH_VALUE.values(), strict=True):
        sent: dict[str, list[str]] = {}
        for name, value in fields:
            sent.setdefault(name, []).append(value)
        assert json.dumps(reviewer.post(sent).answer) == json.dumps(sample["initial"])


def test_text_that_browsers_mangle_comes_back_as_it_was(desk_of: Callable[..., Desk]) -> None:
    values = [
        "\nleading",
        "trailing\n",
        "a\r\nb",
        "a\rb",
        "\t tab ",
        "  ",
        "\x00",
        "\ud800",
        "007",
        "a\u2028b",
        "<b>&amp;</b>",
        "é\u0301",
    ]
    schema = {"type": "array", "items": {"type": "string"}}
    desk = desk_of()
    desk.open(Reviewer.before(schema, values)).click("[data-send]")
    assert desk.reading.answer == values


def test_dates_that_are_none_and_dates_that_are_come_back_as_they_were(desk_of: Callable[..., Desk]) -> None:
    values = [
        "2026-02-30",
        "2026-13-01",
        "0000-01-01",
        "\u0662\u0660\u0662\u0666-01-01",
        "2026-1-1",
        "tomorrow",
        "",
        "2026-12-01",
    ]
    schema = {"type": "array", "items": {"type": "string", "format": "date"}}
    desk = desk_of()
    page = desk.open(Reviewer.before(schema, values))
    page.click("[data-send]")
    assert desk.reading.answer == values
    assert page.locator("input[type=date]").count() == 2
    page.fill('[name="v:/7"]', "2026-12-24")
    page.click("[data-send]")
    assert desk.reading.answer == [*values[:-1], "2026-12-24"]


def test_choosing_a_kind_shows_its_fields_at_once_and_keeps_what_was_typed(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    page = desk.open(Reviewer.at(card_of(SAMPLES["06_pay_nested_discriminator"])))
    page.fill(f'[name="v:{AT}/method/~1/iban"]', "DE99")
    page.get_by_text("Apple / Google", exact=True).click()
    page.get_by_text("Google", exact=True).click()
    page.fill(f'[name="v:{AT}/method/~2/token"]', "tok")
    page.click("[data-send]")
    assert desk.reading.errors == ()
    assert desk.reading.answer["edited_action"]["args"]["method"] == {"kind": "google", "token": "tok"}


def test_the_difference_follows_the_typing_and_the_typing_is_left_alone(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    page = desk.open(Reviewer.at(card_of(SAMPLES["01_send_email"])))
    field = page.locator(f'[name="v:{AT}/subject"]')
    field.click()
    page.keyboard.press("End")
    page.keyboard.type(" and more")
    page.locator("[data-card-diff] ins").wait_for()
    assert "and more" in page.locator("[data-card-diff]").inner_text()
    page.keyboard.type("!")
    assert field.input_value().endswith(" and more!")
    assert field.evaluate("node => node === document.activeElement")


def test_null_puts_the_control_away_without_a_script(desk_of: Callable[..., Desk]) -> None:
    schema = {"type": "object", "properties": {"x": {"type": ["string", "null"]}}, "required": ["x"]}
    desk = desk_of(java_script_enabled=False)
    page = desk.open(Reviewer.before(schema, {"x": "a"}))
    assert page.locator('[name="v:/x"]').is_visible()
    page.get_by_text("Null", exact=True).click()
    assert not page.locator('[name="v:/x"]').is_visible()
    page.click("[data-send]")
    assert desk.reading.answer == {"x": None}


def test_enter_in_a_field_never_decides(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    page = desk.open(Reviewer.at(card_of(SAMPLES["01_send_email"])))
    page.fill(f'[name="v:{AT}/subject"]', "other")
    with page.expect_navigation():
        page.press(f'[name="v:{AT}/subject"]', "Enter")
    pressed = desk.reading
    assert pressed.is_op
    with page.expect_navigation():
        page.press(f'[name="v:{AT}/subject"]', "Control+Enter")
    sent = desk.reading
    assert not sent.is_op
    assert sent.errors == ()


def test_errors_take_the_focus_and_lead_to_their_fields(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    page = desk.open(Reviewer.at(card_of(SAMPLES["03_meeting_nested_arrays"])))
    page.fill(f'[name="v:{AT}/duration"]', "9995")
    page.click("[data-send]")
    page.locator('[role="alert"]:focus').wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(f'[name="v:{AT}/duration"]:focus').wait_for()


def test_the_keyboard_alone_fills_the_most_complex_form(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    page = desk.open(Reviewer.at(card_of(SAMPLES["03_meeting_nested_arrays"])))

    def reach(selector: str) -> None:
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{selector} cannot be reached")

    reach(f'[value="add:{AT}/attendees"]')
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.locator(f'[name="v:{AT}/attendees/n1/name"]:focus').wait_for()
    page.keyboard.type("Cy")
    reach(f'[name="v:{AT}/attendees/n1/email"]')
    page.keyboard.type("cy@ex.org")
    page.evaluate("document.activeElement.blur()")
    reach(f'[value="up:{AT}/attendees/n1"]')
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur()")
    reach(f'[name="s:{AT}/location"]')
    with page.expect_navigation():
        page.keyboard.press("ArrowRight")
    page.evaluate("document.activeElement.blur()")
    reach("[data-send]")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    args = desk.reading.answer["edited_action"]["args"]
    assert desk.reading.errors == ()
    assert [person["name"] for person in args["attendees"]] == ["Ann", "Cy", "Bo"]
    assert args["location"] is None


def test_nothing_that_an_agent_or_a_schema_writes_is_ever_run(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    schema = {
        "type": "object",
        "title": XSS[0],
        "properties": {
            text: {"type": "string", "title": text, "description": text, "default": text} for text in XSS
        },
        "additionalProperties": {"enum": XSS, "title": XSS[1]},
    }
    args = {**{text: text for text in XSS[::2]}, "other": XSS[3]}
    page = desk.open(Reviewer.at(tool_card(schema, args, tool=XSS[0], description=XSS[2])))
    page.click("[data-send]")
    page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main script, main img, main iframe, main [onerror], main base").count() == 0
