"""Projects of agents' authors in a folder of the test's own, and a process that forgets them again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents_runtime import loading, registry
from agents_runtime.listings import Entry, read
from agents_runtime.models import AgentSpec

Project = Callable[..., Path]


@pytest.fixture(autouse=True)
def forgets_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put back the import path, the loaded modules and the cached graphs."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(loading, "_project_folders", set())
    monkeypatch.setattr(registry, "_graphs", {})
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("langchain", "langgraph", "pydantic", "openai")):
            del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a function that writes a project and returns its langgraph.json."""

    def write(
        graphs: Mapping[str, Any], files: Mapping[str, str], *, folder: str = "project", **more: Any
    ) -> Path:
        root = tmp_path / folder
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        root.mkdir(exist_ok=True)
        source = root / "langgraph.json"
        source.write_text(json.dumps({"dependencies": ["."], "graphs": graphs, **more}))
        return source

    return write


@pytest.fixture
def listed(db: None, settings: Settings) -> Callable[..., None]:
    """Return a function that names langgraph.json files as ``COUNTERSIGN_AGENTS`` does; none is known."""
    AgentSpec.objects.all().delete()

    def name(*sources: Path) -> None:
        settings.COUNTERSIGN_AGENTS = [str(source) for source in sources]

    settings.COUNTERSIGN_AGENTS = []
    return name


def entry(source: Path, name: str) -> Entry:
    """Return one entry of a file that is in order."""
    listing = read(source)
    assert listing.troubles == ()
    return next(one for one in listing.entries if one.name == name)
