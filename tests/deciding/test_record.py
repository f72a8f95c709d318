"""What is recorded is RFC 8785 text, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer.audit.record import (
    MAX_SAFE_INTEGER,
    Subject,
    _safe,
    canonical,
    record,
    record_all,
)
from reviewer.models import AuditEvent

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


@pytest.mark.parametrize(
    "write",
    [
        lambda: record("run.failed", subject=Subject()),
        lambda: record_all([("run.failed", Subject()), ("run.failed", Subject())]),
    ],
    ids=["one", "several"],
)
def test_nothing_is_recorded_outside_of_the_transaction_of_its_change(
    committed_db: None, write: Callable[[], object]
) -> None:
    with pytest.raises(RuntimeError, match="only inside the transaction"):
        write()
    assert not AuditEvent.objects.exists()
