"""The clean-up asks for each of three changes by itself and tells honestly what came of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from agents_runtime.agents import records_cleanup
from tests.agents_shipped.conversation import Conversation

Talk = Callable[..., Conversation]
GATED = ("delete_record", "merge_records", "archive_record")
INPUT = {"scope": "nightly_check", "ticket": "DP-2291"}


@pytest.fixture
def proposed(talk: Talk) -> Conversation:
    """A run that waits for three decisions."""
    conversation = talk(records_cleanup)
    conversation.give(INPUT)
    return conversation


def test_three_gated_calls_and_a_read_only_one_come_in_one_turn(proposed: Conversation) -> None:
    assert set(proposed.pauses) == set(GATED)
    assert len({pause.id for pause in proposed.pauses.values()}) == 3
    assert proposed.effects == []


def test_an_approved_change_runs_while_the_others_still_wait(proposed: Conversation) -> None:
    others = {tool: pause.id for tool, pause in proposed.pauses.items() if tool != "merge_records"}
    proposed.approve("merge_records")
    assert [tool for tool, _ in proposed.effects] == ["merge_records"]
    assert {tool: pause.id for tool, pause in proposed.pauses.items()} == others


def test_the_summary_says_what_was_done_changed_and_refused(proposed: Conversation) -> None:
    proposed.approve("merge_records")
    proposed.edit("archive_record", retention="10 years")
    proposed.reject("delete_record", "The erasure request was withdrawn.")
    assert proposed.is_over
    assert [tool for tool, _ in proposed.effects] == ["merge_records", "archive_record"]
    assert proposed.said.startswith("2 of 3 changes were made, 1 refused.")
    assert "- Deletion: refused, because: The erasure request was withdrawn." in proposed.said
    assert "- Merge: C-20988 was merged into C-18302." in proposed.said
    assert "- Archiving: C-11764 was archived for 10 years. The reviewer changed: retention." in proposed.said
    assert "C-19550 belongs to T. Lindqvist and was left as it is." in proposed.said


@pytest.mark.parametrize("order", list(itertools.permutations(GATED)), ids="-".join)
def test_the_order_of_decisions_does_not_matter(talk: Talk, order: tuple[str, ...]) -> None:
    conversation = talk(records_cleanup)
    conversation.give(INPUT)
    for tool in order:
        conversation.approve(tool)
    assert [tool for tool, _ in conversation.effects] == list(order)
    assert conversation.said.startswith("3 of 3 changes were made, 0 refused.")


def test_a_clean_up_of_which_all_is_refused_changes_nothing(proposed: Conversation) -> None:
    for tool in GATED:
        proposed.reject(tool)
    assert proposed.effects == []
    assert proposed.said.startswith("0 of 3 changes were made, 3 refused.")
    assert "refused; no reason was given." in proposed.said
