"""What the README promises is there: its variables, rooms, commands and pictures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text()
READS = re.compile(r'"((?:COUNTERSIGN_[A-Z_]+|HOST|PORT|REDIS_URL|DATABASE_URL|DATABASE_OWNER_URL))"')


def test_every_variable_that_is_read_stands_in_the_table_and_no_other() -> None:
    sources = [
        PROJECT / "reviewer/config/environment.py",
        PROJECT / "reviewer/config/settings.py",
        PROJECT / "reviewer/launch/options.py",
    ]
    read = {name for source in sources for name in READS.findall(source.read_text())}
    rows = [line for line in README.splitlines() if line.startswith("| `") and line.count("|") == 4]
    told = {name for row in rows for name in re.findall(r"`([A-Z][A-Z_]+)`", row.split("|")[1])}
    assert told - {"LANGGRAPH_STRICT_MSGPACK"} == read


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\((\.[\w/.-]+)\)", README))))
def test_every_picture_and_file_that_it_links_is_there(path: str) -> None:
    assert (PROJECT / path).is_file()


def test_every_room_that_it_maps_is_there() -> None:
    table = README.split("## The rooms")[1].split("## The words")[0]
    named = re.findall(r"`([\w/]+(?:/|\.py))`", table)
    roots = [PROJECT, PROJECT / "reviewer", PROJECT / "agents_runtime"]
    assert named
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def test_every_make_target_that_it_names_is_there() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    for target in set(re.findall(r"(?:`|^)make (\w+)", README, re.M)):
        assert re.search(rf"^{target}:", makefile, re.M), target
