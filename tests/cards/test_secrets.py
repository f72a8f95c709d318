"""Secrets on cards: masked wherever a card is drawn or kept, shown on request, and true in every answer."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from reviewer import cards
from reviewer.cards import render
from reviewer.cards.secrets import MASK, is_secret_name
from reviewer.cards.titles import title
from tests.cards.making import Reviewer, tool_card

AT = "/edited_action/args"
KEY = "sk-live-1234567890"


class Login(BaseModel):
    """What a tool with a secret declares."""

    user: str
    password: SecretStr
    spare: SecretStr | None = None


SCHEMA = Login.model_json_schema()
ARGS = {"user": "ann", "password": "hunter2 \u200b"}


SECRETS = (
    "api_key apiKey API_KEY x-api-key token accessToken refresh_token password DB_PASSWORD client_secret "
    "privateKey Authorization passphrase credentials cvc"
)
HARMLESS = (
    "max_tokens tokens next_page_token pageToken key primary_key key_id password_policy secretary tokenizer "
    "passwords_changed author"
)


@pytest.mark.parametrize("name", SECRETS.split())
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", *HARMLESS.split()])
def test_names_that_only_sound_like_it_are_not(name: str) -> None:
    assert not is_secret_name(name)


def arguments(card: cards.Card, **options: Any) -> str:
    return str(render.render_arguments(card, **options))


def test_what_the_schema_calls_a_password_is_masked_with_a_way_to_see_it() -> None:
    card = tool_card(SCHEMA, ARGS)
    assert card.concealed == ("/password",)
    assert card.folded == ()
    html = arguments(card, reveal=lambda pointer, label: render.visible(f"[{label} {pointer}]"))
    assert "hunter2" not in html
    assert "••••••••" in html
    assert "[Show /password]" in html
    assert card.hidden == 1  # the mask hides no hidden character from the count
    shown = arguments(card, expanded=["/password"])
    assert "hunter2" in shown
    assert "U+200B" in shown


def test_a_view_that_is_kept_for_good_has_the_mask() -> None:
    assert "hunter2" not in str(render.render_arguments_in_brief(tool_card(SCHEMA, ARGS)))


def test_secrets_deep_in_a_value_are_masked_and_what_is_around_them_is_not() -> None:
    deep: Any = {"token": KEY, "kept": "seen"}
    for _ in range(12):
        deep = {"in": [deep]}
    html = arguments(
        tool_card(True, {"deep": deep, "list": [{"api_key": KEY, "n": 1}], "credentials": {"id": "ann"}})
    )
    assert KEY not in html
    assert "seen" in html
    assert "ann" not in html
    assert "Empty text" in arguments(tool_card(True, {"token": ""}))
    assert "null" in arguments(tool_card(True, {"token": None}))


def test_an_untouched_edit_keeps_the_secret_and_its_field_is_masked() -> None:
    reviewer = Reviewer.at(tool_card(SCHEMA, ARGS))
    assert "input--secret" in reviewer.html
    assert 'type="password"' not in reviewer.html  # a password manager would write over it
    reading = reviewer.send(**{f"v:{AT}/user": "bo"})
    assert reading.answer["edited_action"]["args"] == {"user": "bo", "password": "hunter2 \u200b"}


def test_a_masked_field_is_shown_and_hidden_again_without_a_script() -> None:
    reviewer = Reviewer.at(tool_card(SCHEMA, ARGS))
    assert "U+200B" not in reviewer.html
    assert reviewer.html.count("input--secret") == 2  # password and spare
    reviewer.press(f"uncover:{AT}/password", **{f"v:{AT}/user": "bo"})
    assert reviewer.html.count("input--secret") == 1
    assert "U+200B" in reviewer.html
    reviewer.press("refresh")
    assert reviewer.html.count("input--secret") == 1
    reviewer.press(f"uncover:{AT}/password")
    assert reviewer.html.count("input--secret") == 2
    assert reviewer.send().answer["edited_action"]["args"] == {**ARGS, "user": "bo"}


def test_a_key_of_many_lines_is_masked_and_comes_back_line_by_line() -> None:
    args = {"private_key": "-----BEGIN-----\nAAAA\n-----END-----\n"}
    reviewer = Reviewer.at(
        tool_card({"type": "object", "properties": {"private_key": {"type": "string"}}}, args)
    )
    assert '<textarea class="input input--secret"' in reviewer.html
    assert reviewer.send().answer["edited_action"]["args"] == args


def test_json_of_unknown_shape_with_a_secret_in_it_is_masked_as_a_whole() -> None:
    reviewer = Reviewer.at(tool_card({"type": "object"}, {"n": 1, "api_key": KEY}))
    assert "input--secret" in reviewer.html
    reviewer.press(f"uncover:{AT}")
    assert "input--secret" not in reviewer.html


def test_a_difference_says_that_a_secret_changed_and_not_how() -> None:
    card = tool_card(SCHEMA, ARGS)
    reviewer = Reviewer.at(card)
    reading = reviewer.send(**{f"v:{AT}/password": "correct horse"})
    html = str(render.render_diff(reading.changes, mask=card.mask))
    assert html.count("••••••••") == 2
    assert "hunter2" not in html + reviewer.html.split("<del>")[1].split("</del>")[0]
    assert "horse" not in html
    assert [change.after for change in reading.changes] == ["correct horse"]


def test_names_alone_mask_a_difference_without_a_card() -> None:
    card = tool_card(True, {"a": {"token": KEY}})
    changes = card.changes(
        {"type": "edit", "edited_action": {"args": {"a": {"token": "new-secret", "b": {"pwd": "x9"}}}}}
    )
    html = str(render.render_diff(changes))
    assert KEY not in html
    assert "new-secret" not in html
    assert "x9" not in html


def test_the_record_lacks_what_the_schema_says_is_not_for_showing_and_only_that() -> None:
    properties = {**SCHEMA["properties"], "api_key": {"type": "string"}}
    card = tool_card({**SCHEMA, "properties": properties}, ARGS)
    args: dict[str, Any] = {"user": "bo", "password": "new", "spare": "older", "api_key": KEY}
    answer: Any = {"type": "edit", "edited_action": {"name": "act", "args": args}}
    kept = card.for_the_record(answer)["edited_action"]["args"]
    assert kept == {"user": "bo", "password": "••••••••", "spare": "••••••••", "api_key": KEY}
    told = {change.name: change.after for change in card.changes_for_the_record(answer)}
    assert told == kept
    assert card.for_the_record({"type": "approve"}) == {"type": "approve"}
    assert answer["edited_action"]["args"] == args


def test_a_title_holds_no_secret() -> None:
    assert title(None, "login", {"token": KEY, "user": "ann"}) == "Login: ann"
    assert title("Log in with {token}", "login", {"token": KEY}) == "Log in with ••••••••"
    assert title("Log in with {a.token}", "login", {"a": {"token": KEY}}) == "Log in with ••••••••"


ANYTHING: Any = {"$ref": "#/$defs/Anything"}
LISTS: Any = [{"type": "array", "items": ANYTHING, "title": title} for title in ("a", "b", "c")]
WITHIN: Any = {
    "anyOf": [
        *LISTS,
        {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}},
        {"type": "string"},
    ]
}


def test_a_schema_whose_branches_meet_again_is_followed_to_any_depth_in_time() -> None:
    schema = {
        "type": "object",
        "properties": {"a": ANYTHING},
        "$defs": {"Anything": WITHIN},
    }
    value: Any = {"pin": "4711", "note": "n"}
    for _ in range(50):
        value = [value]
    card = tool_card(schema, {"a": value})
    answer = {"type": "edit", "edited_action": {"name": "act", "args": {"a": value}}}
    kept = str(card.for_the_record(answer))
    assert "4711" not in kept
    assert "note" in kept
    assert "4711" not in render.render_diff(cards.diff({"a": []}, {"a": value}), mask=card.mask)


def test_each_item_of_a_list_is_masked_by_its_own_schema() -> None:
    secret = {"type": "string", "writeOnly": True}
    pair = {"type": "array", "prefixItems": [{"type": "string"}, secret], "items": {"type": "string"}}
    card = tool_card(
        {"type": "object", "properties": {"pairs": {"type": "array", "items": pair}}}, {"pairs": []}
    )
    told = card.mask.value({"pairs": [["a", "s1", "b", "c"], ["d", "s2"], ["e"]]})
    assert told == {"pairs": [["a", MASK, "b", "c"], ["d", MASK], ["e"]]}


@pytest.mark.parametrize("template", [None, "Reset {pin}", "Reset {user.pin} of {user.name}"])
def test_a_title_holds_nothing_that_the_schema_says_is_not_for_showing(template: str | None) -> None:
    pin = {"type": "string", "writeOnly": True}
    user = {"type": "object", "properties": {"pin": {"type": "string", "format": "password"}}}
    schema = {"type": "object", "properties": {"pin": pin, "user": user}}
    args = {"pin": "4711", "user": {"pin": "4712", "name": "ann"}}
    title_of_card = tool_card(schema, args, title_template=template).title
    assert "471" not in title_of_card
    assert title_of_card.startswith("Reset" if template else "Act")
