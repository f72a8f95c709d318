"""Fixtures of the tests of what agents' authors use."""

from __future__ import annotations

from tests.runtime.conftest import workers_that_die
from tests.runtime.driving import runtime

__all__ = ["runtime", "workers_that_die"]
