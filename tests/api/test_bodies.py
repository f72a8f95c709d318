"""What programs send is taken exactly or refused clearly; nothing breaks the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_runtime.canonical import decode, encode, same
from agents_runtime.desk import ReviewRequest
from reviewer.api.bodies import Unfit, Unreadable, parse
from reviewer.models import Decision, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund, pause_run
from tests.doors import ApiClient, json_of

Programs = Callable[..., ApiClient]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
EXACT: list[Any] = [
    123456789012345678901234567890,
    -(2**64),
    2**53 + 1,
    1,
    1.0,
    0.1,
    1e300,
    5e-324,
    -0.0,
    True,
    None,
    "\ud800",
    "\x00",
    "é",
    {"~type": "bytes"},
    {"": [[], {}]},
]


@given(JSON)
def test_every_json_value_is_parsed_as_it_is(value: Any) -> None:
    assert same(parse(json.dumps(value).encode()), value)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"deep": {"a": 1, "a": 1}}',
        b"NaN",
        b'{"a": -Infinity}',
        b"[1e999]",
        b"[" * 61 + b"]" * 61,
        b"[" * 100_000 + b"]" * 100_000,
        b"1" * 5_000,
    ],
)
def test_a_body_that_two_parsers_would_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(Unfit):
        parse(body)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"{'a': 1}", b"\xff\xfe", b"\xed\xa0\x80", b"[1,]", b"01", b"{}x"]
)
def test_a_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        parse(body)


@pytest.fixture
def task(cast: Cast) -> ReviewTask:
    return open_refund(by=cast.developer)


@pytest.mark.parametrize("value", EXACT, ids=repr)
def test_an_answer_is_stored_and_given_back_to_the_digit(
    cast: Cast, api_client: Programs, value: Any
) -> None:
    request = ReviewRequest(position=0, kind="question", arguments="?", response_schema=True)
    asked = pause_run(request, by=cast.developer).tasks.get()
    program = api_client(cast.reviewer)
    made = program.post(f"tasks/{asked.pk}/decision", {"answer": value, "digest": asked.digest})
    assert made.status_code == 200
    assert same(decode(Decision.objects.get().answer), value)
    assert encode(json_of(made)["answer"]) == encode(value)
    shown = json_of(program.get(f"tasks/{asked.pk}"))
    assert encode(shown["decision"]["answer"]) == encode(value)


HOSTILE: list[tuple[str, bytes, int, str]] = [
    ("no json", b"{", 400, "malformed"),
    ("no utf-8", b'{"digest": "\xff"}', 400, "malformed"),
    ("twice", b'{"answer": 1, "answer": 2, "digest": "x"}', 422, "invalid"),
    ("nan", b'{"answer": NaN, "digest": "x"}', 422, "invalid"),
    ("deep", b'{"digest": "x", "answer": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 422, "invalid"),
    ("a list", b"[]", 422, "invalid"),
    ("nothing", b"", 422, "invalid"),
    ("null", b"null", 422, "invalid"),
    ("no answer", b'{"digest": "x"}', 422, "invalid"),
    ("no digest", b'{"answer": {"type": "approve"}}', 422, "invalid"),
    ("a digest that is a number", b'{"answer": 1, "digest": 7}', 422, "invalid"),
    ("a field of somebody else", b'{"answer": 1, "digest": "x", "decided_by": "lead"}', 422, "invalid"),
    ("a claim that is text", b'{"answer": 1, "digest": "x", "claim_version": "1"}', 422, "invalid"),
    ("a claim that is true", b'{"answer": 1, "digest": "x", "claim_version": true}', 422, "invalid"),
    ("a nul in a reason", b'{"answer": 1, "digest": "x", "reason_code": "\\u0000"}', 422, "invalid"),
    ("half a character", b'{"answer": 1, "digest": "\\ud800"}', 422, "invalid"),
    ("a long reason", b'{"answer": 1, "digest": "x", "reason_code": "' + b"r" * 41 + b'"}', 422, "invalid"),
    ("too much", b'{"answer": "' + b"x" * 9_000_000 + b'", "digest": "x"}', 413, "too_large"),
]


@pytest.mark.parametrize(("raw", "status", "code"), [pytest.param(*case[1:], id=case[0]) for case in HOSTILE])
def test_a_hostile_body_gets_a_clear_answer(
    cast: Cast, api_client: Programs, task: ReviewTask, raw: bytes, status: int, code: str
) -> None:
    response = api_client(cast.reviewer).post(f"tasks/{task.pk}/decision", raw=raw)
    assert (response.status_code, json_of(response)["error"]) == (status, code)
    assert set(json_of(response)) == {"error", "message", "problems", "who", "when", "tasks"}
    assert not Decision.objects.exists()


def test_a_comment_may_hold_what_a_text_column_cannot(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    body = {"answer": APPROVE, "digest": task.digest, "comment": "a\x00b\ud800"}
    assert api_client(cast.reviewer).post(f"tasks/{task.pk}/decision", body).status_code == 200


def test_a_comment_that_is_too_long_points_at_itself(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    body = {"answer": APPROVE, "digest": task.digest, "comment": "x" * 4_001}
    response = api_client(cast.reviewer).post(f"tasks/{task.pk}/decision", body)
    assert response.status_code == 422
    assert json_of(response)["problems"][0]["pointer"] == "/comment"


@pytest.mark.parametrize(
    ("address", "query", "pointer"),
    [
        ("tasks", {"limit": "0"}, "/limit"),
        ("tasks", {"limit": "x"}, "/limit"),
        ("tasks", {"offset": "-1"}, "/offset"),
        ("tasks", {"status": "done"}, "/status"),
        ("tasks", {"run": "r-1"}, "/run"),
        ("tasks", {"queue": "a\x00b"}, "/queue"),
        ("audit", {"before": "99999999999999999999"}, "/before"),
        ("audit", {"since": "yesterday"}, "/since"),
        ("audit", {"since": "2026-01-01T00:00:00"}, "/since"),
        ("audit", {"person": "\x00"}, "/person"),
    ],
)
def test_a_wrong_filter_is_named(
    cast: Cast, api_client: Programs, address: str, query: dict[str, str], pointer: str
) -> None:
    response = api_client(cast.admin).get(address, **query)
    assert response.status_code == 422
    assert [problem["pointer"] for problem in json_of(response)["problems"]] == [pointer]


@pytest.mark.parametrize(
    "address",
    ["nowhere", "tasks/not-a-uuid", "tasks/1/decision", "runs/../tasks", "queues/Ä/claim-next", "a\x00b"],
)
def test_an_address_that_is_none_answers_in_json(cast: Cast, api_client: Programs, address: str) -> None:
    response = api_client(cast.admin).get(address)
    assert response.status_code == 404
    assert json_of(response)["error"] == "not_found"


def test_a_method_that_an_address_does_not_know_is_refused_in_json(cast: Cast, api_client: Programs) -> None:
    response = api_client(cast.admin).post("audit")
    assert (response.status_code, json_of(response)["error"]) == (405, "not_a_method")
    assert response["Allow"] == "GET"


@pytest.mark.parametrize(
    "address", ["tasks?status=&queue=&run=", "audit?run=&task=&since=&until=&before=&person="]
)
def test_an_empty_filter_does_not_filter(
    cast: Cast, api_client: Programs, task: ReviewTask, address: str
) -> None:
    assert json_of(api_client(cast.admin).get(address))["items"]
