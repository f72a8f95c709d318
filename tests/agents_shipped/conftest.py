"""Shipped agents on their scripts, with a home of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from pytest_django.fixtures import Settings

from tests.agents_shipped.conversation import Conversation


@pytest.fixture
def home(settings: Settings, tmp_path: Path) -> Path:
    """The folder that shows what tools did; the scripts speak without delay."""
    settings.COUNTERSIGN_HOME = tmp_path
    settings.COUNTERSIGN_SCRIPT_DELAY = 0
    settings.COUNTERSIGN_MODEL = ""
    return tmp_path


@pytest.fixture
def talk(home: Path) -> Callable[..., Conversation]:
    """Return a function that begins a run of an agent's module."""

    def begin(agent: ModuleType, *, is_async: bool = False) -> Conversation:
        return Conversation(agent.make_graph(), home=home, is_async=is_async)

    return begin
