"""No row is left without its test: the rows of the lists of facts, and the tests that are named by them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROWS = {
    "trap": set(range(1, 17)),
    "finding": set(range(1, 11)),
    "report": set(range(2, 81, 2)),
}


@pytest.mark.parametrize("kind", sorted(ROWS))
def test_every_row_has_a_test_of_its_name(kind: str) -> None:
    here = Path(__file__).parent
    names = "".join(path.read_text() for path in sorted(here.glob("test_*.py")))
    found = {int(number) for number in re.findall(rf"^(?:async )?def test_{kind}_(\d\d)_", names, re.M)}
    assert found == ROWS[kind]
