"""The canonical encoder keeps every value to the byte, and never raises."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agents_runtime.canonical import Plain, decode, digest, encode, same, storable

texts = st.text(st.characters(codec=None, categories=None), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.just("~type"), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_comes_back_as_it_was_and_encodes_to_the_same_bytes(value: object) -> None:
    text = encode(value)
    assert same(decode(text), value)
    assert encode(decode(text)) == text
    assert text.isascii()


@given(json_values, json_values)
def test_two_values_share_a_digest_only_if_their_text_is_the_same(left: object, right: object) -> None:
    assert (digest(left) == digest(right)) == (encode(left) == encode(right))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**53 + 1, "9007199254740993"),
        (30.0, "30.0"),
        (30, "30"),
        (1e22, "1e+22"),
        (-0.0, "-0.0"),
        (True, "true"),
        ("19.90", '"19.90"'),
        ("é\ud800\x00", '"\\u00e9\\ud800\\u0000"'),
        ({"b": 1, "a": [None]}, '{"a":[null],"b":1}'),
    ],
)
def test_numbers_and_text_have_one_exact_form(value: object, text: str) -> None:
    assert encode(value) == text


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Point:
    x: int
    when: dt.date


class Model(BaseModel):
    amount: decimal.Decimal


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        b"\x00\xff",
        dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        dt.timedelta(days=-1, microseconds=3),
        decimal.Decimal("1.10"),
        uuid.UUID(int=7),
        {3, 1, 2},
        {1: "a", (2, 3): "b"},
        Colour.RED,
        Point(1, dt.date(2026, 1, 1)),
        Model(amount=decimal.Decimal("1.10")),
        Rude(),
        object(),
    ],
)
def test_a_value_that_json_cannot_hold_is_tagged_and_never_raises(value: object) -> None:
    assert decode(encode(value))["~type"]


def test_an_agent_cannot_forge_a_tag() -> None:
    forged = {"~type": "Decimal", "value": "1"}
    assert not same(forged, decimal.Decimal("1"))
    assert decode(encode(forged)) == forged


def test_plain_data_is_taken_as_it_stands() -> None:
    text = encode({"price": decimal.Decimal("1.50"), "many": 10**40})
    assert encode(Plain(decode(text))) == text
    assert encode([Plain(decode(text))]) == f"[{text}]"


def test_a_value_that_holds_itself_ends_at_the_depth_limit() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "too-deep" in encode(loop)


@given(texts)
def test_storable_text_fits_a_text_column(text: str) -> None:
    stored = storable(text)
    assert "\x00" not in stored
    stored.encode("utf-8")
