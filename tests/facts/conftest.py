"""Fixtures of the tests of facts: runs, a reviewer at their desk, and workers that may die."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.crashing import nursery
from tests.runtime.driving import runtime
from tests.runtime.reviewing import ines

__all__ = ["ines", "runtime", "workers_that_die"]


@pytest.fixture(scope="session")
def workers_that_die(registered_agents: None) -> Iterator[None]:
    """Let ``crashing.advance_in_child`` work."""
    with nursery():
        yield
