"""The table of failpoints names what exists, and each name once."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.chaos.failpoints import FAILPOINTS, Failpoint, find


@pytest.mark.parametrize("point", FAILPOINTS, ids=lambda point: point.name)
def test_every_failpoint_stands_at_a_function_of_the_product(point: Failpoint) -> None:
    holder, name = find(point.place)
    assert callable(getattr(holder, name))


def test_every_failpoint_has_its_own_name() -> None:
    assert max(Counter(point.name for point in FAILPOINTS).values()) == 1
