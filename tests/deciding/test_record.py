"""What is recorded is RFC 8785 text, byte for byte."""

from __future__ import annotations

from typing import Any

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer.audit.record import MAX_SAFE_INTEGER, _safe, canonical

FACTS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.text(st.characters(exclude_categories=[]))
)


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), FACTS), st.text())
def test_the_text_of_a_payload_is_the_canonical_one(facts: dict[str, str | int | None], outcome: str) -> None:
    payload: Any = {
        "v": 1,
        "actor": {"id": None, "name": "Ünï ☃"},
        "outcome": outcome,
        "facts": {name: _safe(value) for name, value in facts.items()},
    }
    assert canonical(payload) == rfc8785.dumps(payload).decode("utf-8")
