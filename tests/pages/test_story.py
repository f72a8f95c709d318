"""How a run's story counts time and what it tells of each event."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_runtime.canonical import encode
from agents_runtime.models import Pause, RunStep, ToolExecution
from agents_runtime.states import RunStatus
from reviewer import claims, decisions
from reviewer.timeline import tell, waited_for_people
from reviewer.timeline.entries import LONG
from reviewer.web.durations import duration_words
from tests.cast import Cast
from tests.deciding.making import APPROVE, open_refund, pause_run, question, refund

START = dt.datetime(2026, 11, 30, 9, 0, tzinfo=dt.UTC)
MINUTES = st.integers(min_value=0, max_value=600)


def pause(start: int, end: int) -> Pause:
    """Return a pause that waited from one minute to another."""
    return Pause(
        created_at=START + dt.timedelta(minutes=start), answered_at=START + dt.timedelta(minutes=end)
    )


def test_pauses_that_wait_at_the_same_time_count_once() -> None:
    assert waited_for_people([pause(0, 10), pause(5, 12), pause(20, 21)]) == dt.timedelta(minutes=13)


@given(st.lists(st.tuples(MINUTES, MINUTES), max_size=20))
def test_the_time_waited_is_the_number_of_minutes_in_which_any_pause_was_open(
    spans: list[tuple[int, int]],
) -> None:
    ordered = [(min(span), max(span)) for span in spans]
    minutes = {minute for start, end in ordered for minute in range(start, end)}
    assert waited_for_people([pause(*span) for span in ordered]) == dt.timedelta(minutes=len(minutes))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.01, "0 s"),
        (0.84, "0.8 s"),
        (48, "48 s"),
        (182, "3 min 2 s"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations_are_told_in_two_units_at_most(seconds: float, words: str) -> None:
    assert duration_words(dt.timedelta(seconds=seconds)) == words


def test_the_story_ends_with_what_the_run_waits_for(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    story = tell(cast.reviewer, task.run)
    assert story.entries[-1].is_now
    assert story.entries[-1].title == "Waits for 1 decision"
    assert story.open_tasks == [task]


def test_a_card_that_somebody_claimed_says_so(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    claims.claim(task.pk, by=cast.reviewer2)
    asked = next(entry for entry in tell(cast.reviewer, task.run).entries if entry.task == task)
    assert asked.notes == ["Payments, policy refunds v1. Claimed by Tom O."]


def test_an_edit_tells_what_it_changed(cast: Cast) -> None:
    task = open_refund(by=cast.developer, amount="18.40")
    args = {"order_id": "A-1001", "amount": "9.20", "note": "Half"}
    answer = {"type": "edit", "edited_action": {"name": "issue_refund", "args": args}}
    decisions.decide(task.pk, by=cast.reviewer, answer=answer, digest=task.digest)
    told = next(entry for entry in tell(cast.lead, task.run).entries if entry.event)
    assert told.title == "Ines H. approved with 2 changes"
    assert "amount: “18.40” became “9.20”" in told.notes
    assert "note: added “Half”" in told.notes


def test_a_card_in_a_queue_that_the_reader_is_not_in_is_named_by_its_tool_only(cast: Cast) -> None:
    run = pause_run(refund(), replace(question(), position=1), by=cast.developer).run
    cast.reviewer.memberships.filter(queue=cast.payments).delete()
    asked = next(entry for entry in tell(cast.reviewer, run).entries if entry.code == "issue_refund")
    assert asked.task is None
    assert not any("18.40" in note for note in asked.notes)


def test_a_gated_call_is_told_by_the_ledger_and_once_only(cast: Cast) -> None:
    task = open_refund(by=cast.developer)
    decisions.decide(task.pk, by=cast.reviewer, answer=APPROVE, digest=task.digest)
    ToolExecution.objects.create(
        run=task.run,
        pause=task.pause,
        call_key="call",
        tool=task.tool,
        tool_call_id=task.tool_call_id,
        arguments=task.action,
        arguments_digest="0" * 64,
        grant="decision",
        status="succeeded",
        result=encode("re_1"),
        epoch=1,
    )
    data = encode({"tool_call_id": task.tool_call_id, "status": "success"})
    RunStep.objects.create(run=task.run, key="tool:1", kind="tool", name=task.tool, text="re_1", data=data)
    told = [entry for entry in tell(cast.reviewer, task.run).entries if entry.title == "Tool ran"]
    assert [entry.said for entry in told] == ["re_1"]


def test_a_long_text_is_shown_from_its_beginning_and_opens_in_place(cast: Cast) -> None:
    run = open_refund(by=cast.developer).run
    RunStep.objects.create(run=run, key="message:m", kind="model", text="x" * (LONG + 1))
    said = next(entry for entry in tell(cast.reviewer, run).entries if entry.title == "Model said")
    assert len(said.beginning) < LONG
    assert len(said.said) == LONG + 1


def test_details_that_the_runtime_cut_short_do_not_break_the_story(cast: Cast) -> None:
    run = open_refund(by=cast.developer).run
    RunStep.objects.create(run=run, key="message:m", kind="model", text="Hello", data='{"tool_calls":[{"na')
    assert any(entry.said == "Hello" for entry in tell(cast.reviewer, run).entries)


@pytest.mark.parametrize("status", [RunStatus.FINISHED, RunStatus.CANCELLED, RunStatus.FAILED])
def test_a_run_that_is_over_waits_for_nothing(cast: Cast, status: RunStatus) -> None:
    run = open_refund(by=cast.developer).run
    run.status = status
    assert not tell(cast.reviewer, run).entries[-1].is_now
