"""A card that is drawn differently is drawn by another version of the renderer, and the record says which."""

from __future__ import annotations

from dataclasses import replace

from reviewer.cards.version import RENDERER_VERSION
from tests.cards.renderer import differences, drawn_now, recorded

WHAT_TO_DO = """
The cards that people see are drawn differently than was recorded: {names}.
If you did not mean to change how cards look, take the change back. If you did, run `make drawings`: it raises
RENDERER_VERSION in reviewer/cards/version.py by one and records the new drawings in
tests/cards/renderer.json.
Commit both with your change, so that cards which were decided before stay what people saw.
"""


def test_a_change_of_the_drawings_comes_with_a_new_version() -> None:
    changed = differences(recorded(), drawn_now())
    assert not changed, WHAT_TO_DO.format(names=", ".join(changed[:12]))
    assert recorded().version == RENDERER_VERSION, "Run `make drawings` and commit tests/cards/renderer.json."


def test_the_corpus_draws_through_the_templates_of_the_read_only_view() -> None:
    used = set(recorded().templates)
    assert {
        "tasks/shown.html",
        "cards/kv.html",
        "cards/value.html",
        "cards/fold.html",
        "cards/parts.html",
    } <= used
    assert len(recorded().drawings) > 50


def test_every_kind_of_difference_is_named() -> None:
    old = recorded()
    other = replace(
        old,
        drawings={**old.drawings, "critical": "0" * 64, "brand new": "1" * 64},
        templates={name: sha for name, sha in old.templates.items() if name != "cards/kv.html"},
    )
    assert differences(old, other) == ["brand new", "critical", "cards/kv.html"]
    assert differences(old, old) == []
