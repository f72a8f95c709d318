"""Fixtures of the runtime's tests."""

from __future__ import annotations

from tests.runtime.driving import runtime

__all__ = ["runtime"]
