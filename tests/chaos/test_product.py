"""Short form of ``make chaos``: the whole product, its servers and its clocks."""

from __future__ import annotations

import pytest

from tests.chaos.running import play


@pytest.mark.worker
def test_the_product_balances_its_books_after_everything_around_it_failed() -> None:
    assert "violations: 0" in play("product", seeds=1)
