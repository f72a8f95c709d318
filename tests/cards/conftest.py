"""What browser tests of cards share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.cards.desk import Desk


@pytest.fixture
def desk_of(browser: Browser) -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def opened(**options: Any) -> Desk:
        desks.append(Desk(browser.new_context(**options).new_page()))
        return desks[-1]

    yield opened
    assert [complaint for desk in desks for complaint in desk.complaints if "422" not in complaint] == []
