"""Every kind of pause, all the way: an agent asks, cards open on pages, a reviewer decides, it goes on.

What each card looks like is tested with the cards; what the runtime records, in ``test_kinds``.
"""

from __future__ import annotations

import json
from itertools import product

import pytest

from agents_runtime.canonical import Json, decode
from agents_runtime.models import Pause
from reviewer import decisions
from reviewer.errors import Invalid
from tests.agents import effects
from tests.agents.shapes import VALUES
from tests.runtime.driving import (
    APPROVE,
    REJECT,
    advance,
    call,
    edit,
    last_words,
    pauses,
    script,
    start,
)
from tests.runtime.reviewing import Reviewer

PAY = call("pay", to="a", amount=1)
APAY = call("apay", to="a", amount=1)
DROP = call("drop", path="/b")
LOOK = call("look", what="x")


def as_task(*turns: list[dict[str, Json]]) -> str:
    """Return the words by which a subagent is told to play these turns."""
    return str(script(*turns)["messages"][0]["content"])


def delegated(*calls: dict[str, Json], to: str = "general-purpose") -> dict[str, Json]:
    """Return a Deep Agent's call that hands these calls to a subagent."""
    return call("task", description=as_task(list(calls)), subagent_type=to)


# Calls of tools


@pytest.mark.parametrize(("agent", "name"), [("t-per-call", "pay"), ("t-async", "apay")])
def test_each_gated_call_is_a_card_of_its_own(ines: Reviewer, agent: str, name: str) -> None:
    calls = [call(name, to=to, amount=1) for to in ("a", "b", "c")]
    run = start(agent, script([*calls, LOOK]))
    assert effects.count("look") == 1
    first, second, third = ines.cards(run)
    assert [task.arguments["to"] for task in (first, second, third)] == ["a", "b", "c"]
    run = ines.decide(second, REJECT)
    run = ines.decide(third, edit(name, to="c", amount=9))
    assert effects.count(name) == effects.count(name, to="c", amount=9) == 1
    run = ines.decide(first, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count(name, to="a", amount=1) == 1
    assert effects.count(name) == 2
    assert "not today" in last_words(run)


@pytest.mark.parametrize(("agent", "name"), [("t-batched", "pay"), ("t-async-batched", "apay")])
def test_decisions_of_a_batch_are_held_until_all_are_made_and_go_out_in_the_order_of_the_calls(
    ines: Reviewer, agent: str, name: str
) -> None:
    calls = [call(name, to=to, amount=1) for to in ("a", "b", "c")]
    run = start(agent, script([*calls, LOOK]))
    first, second, third = ines.cards(run)
    assert Pause.objects.filter(run=run).count() == 1
    ines.decide(third, edit(name, to="c", amount=9))
    run = ines.decide(first, REJECT)
    assert run.status == "waiting"
    assert effects.all_effects() == []
    (pause,) = pauses(run)
    assert (pause.status, pause.answers) == ("pending", "")
    run = ines.decide(second, APPROVE)
    assert run.status == "finished", run.error
    (pause,) = pauses(run)
    assert decode(pause.answers) == [REJECT, APPROVE, edit(name, to="c", amount=9)]
    assert [effect["to"] for effect in effects.all_effects() if effect["name"] == name] in (
        ["b", "c"],
        ["c", "b"],
    )
    assert effects.count("look") == 1


@pytest.mark.parametrize("spelling", ["args", "arguments"])
def test_a_batch_that_an_agent_builds_by_hand_is_read_in_both_spellings(
    ines: Reviewer, spelling: str
) -> None:
    actions = [{"name": "wipe", spelling: {"disk": number}} for number in (1, 2)]
    reviews = [{"action_name": "wipe", "allowed_decisions": ["approve", "reject"]}]
    run = start("t-parrot", {"ask": json.dumps({"action_requests": actions, "review_configs": reviews})})
    first, second = ines.cards(run)
    assert (first.arguments, second.arguments) == ({"disk": 1}, {"disk": 2})
    ines.decide(second, REJECT)
    run = ines.decide(first, APPROVE)
    assert decode(run.output)["answers"] == [{"decisions": [APPROVE, REJECT]}]


def test_a_condition_asks_about_some_calls_only(ines: Reviewer) -> None:
    run = start("t-conditional", script([PAY, call("pay", to="b", amount=500)]))
    assert effects.count("pay") == 1
    run = ines.answer(run, APPROVE)
    assert run.status == "finished", run.error
    assert effects.count("pay") == 2


def test_a_card_shows_the_authors_own_description_and_the_model_reads_the_authors_own_notice(
    ines: Reviewer,
) -> None:
    run = start("t-describing", script([PAY], say="Ann wants her money."))
    task = ines.card(run)
    assert task.description == "Ann wants her money. Would pay 1 to a."
    assert task.description in ines.page(task)
    run = ines.decide(task, edit("pay", to="a", amount=2))
    assert run.status == "finished", run.error
    assert "A colleague mended this." in last_words(run)


# Questions


def test_any_value_becomes_a_card_and_any_json_answers_it(ines: Reviewer) -> None:
    for name in VALUES:
        run = start("t-shower", {"ask": name})
        task = ines.card(run)
        assert task.kind == "question"
        run = ines.decide(task, {"seen": name})
        assert run.status == "finished", (name, run.error)
        assert decode(run.output)["answers"] == [{"seen": name}]


SHOWN: dict[str, Json] = {
    "text": "Is it late?",
    "none": None,
    "huge number": 10**40,
    "nan": {"~type": "float", "value": "nan"},
    "decimal": {"~type": "Decimal", "value": "1.50"},
    "bytes": {"~type": "bytes", "base64": "AP8="},
    "date": {"~type": "date", "value": "2026-11-30"},
    "set": {"~type": "set", "items": ["a", "b"]},
    "pydantic": {"weight": 1.5, "to": "Ann"},
    "dataclass": {"cents": 90, "colour": "red"},
    "half a character": "? and NUL \x00",  # the library itself stores no half characters
}


def test_values_that_are_no_json_are_shown_for_what_they_are(ines: Reviewer) -> None:
    for name, wanted in SHOWN.items():
        assert ines.card(start("t-shower", {"ask": name})).arguments == wanted, name
    shown = ines.card(start("t-shower", {"ask": "handle"})).arguments
    assert (shown["~type"], shown["name"]) == ("object", "tests.agents.shapes.Handle")


def test_an_interrupt_of_a_shape_nobody_has_seen_shows_all_of_itself(ines: Reviewer) -> None:
    page = ines.page(ines.card(start("t-shower", {"ask": "unseen"})))
    for part in ("approval_v9", "slider", "wipe"):
        assert part in page


TYPED: dict[str, tuple[Json, Json, str]] = {
    "pydantic": ({"weight": 2.5, "to": "Ann"}, {"weight": -1, "to": "Ann"}, "Parcel"),
    "typed mapping": ({"number": 4, "note": "n"}, {"number": 4}, "dict"),
    "dataclass": ({"cents": 5, "colour": "blue"}, {"cents": 5, "colour": "green"}, "Stamp"),
    "literal": ("yes", "maybe", "str"),
    "whole number": (12, "twelve", "int"),
    "list of objects": ([{"weight": 1.5, "to": "Ann"}], [{"weight": 1.5}], "list"),
    "schema": ({"score": 7}, {"score": 11}, "dict"),
}


@pytest.mark.parametrize("agent", ["t-typed", "t-async-typed"])
def test_a_typed_question_takes_only_what_fits_and_the_agent_gets_its_own_type(
    ines: Reviewer, agent: str
) -> None:
    for kind, (fits, misfits, type_name) in TYPED.items():
        effects.clear()
        run = start(agent, {"ask": kind})
        task = ines.card(run)
        with pytest.raises(Invalid) as refused:
            decisions.decide(task.pk, by=ines.person, answer=misfits, digest=task.digest)
        assert refused.value.problems, kind
        assert effects.all_effects() == []
        run = ines.decide(task, fits)
        assert run.status == "finished", (kind, run.error)
        assert effects.count("answered", type=type_name) == 1, kind


def test_several_questions_in_one_async_node_and_a_loop_that_asks_again(ines: Reviewer) -> None:
    run = start("t-async-asker", {"ask": "x"})
    run = ines.answer(run, {"first": 1}, None, "many")
    assert ines.card(run).arguments == "a number (1)"
    run = ines.answer(run, 12)
    assert run.status == "finished", run.error
    assert decode(run.output)["answers"] == [{"first": 1}, None, 12]
    assert len({pause.interrupt_id for pause in pauses(run)}) == 4


@pytest.mark.parametrize(("agent", "size"), [("t-crowd", 100), ("t-async-crowd", 12)])
def test_a_crowd_of_questions_side_by_side_each_get_their_own_answer(
    ines: Reviewer, agent: str, size: int
) -> None:
    run = start(agent, {"ask": str(size)})
    tasks = list(run.tasks.order_by("pause__place"))
    assert len(tasks) == len({task.pause.interrupt_id for task in tasks}) == size
    for task in reversed(tasks):
        number = int(task.arguments["number"])
        decisions.decide(task.pk, by=ines.person, answer=number, digest=task.digest)
    run = advance(run)
    assert run.status == "finished", run.error
    assert decode(run.output)["answers"] == list(range(size))
    assert not run.pauses.exclude(status="delivered").exists()


def test_questions_of_a_subgraph_surface_and_what_came_before_them_is_not_done_again(
    ines: Reviewer,
) -> None:
    run = start("t-house", {"ask": "x"})
    run = ines.answer(run, "one", "two", "three")
    assert run.status == "finished", run.error
    assert decode(run.output)["answers"] == ["entered", "one", "two", "three"]
    assert effects.count("enter") == 1


@pytest.mark.parametrize(("agent", "name"), [("t-drafter", "pay"), ("t-async-drafter", "apay")])
def test_a_middleware_of_the_authors_own_lets_a_person_mend_a_draft(
    ines: Reviewer, agent: str, name: str
) -> None:
    run = start(agent, script([call(name, to="a", amount=1)]))
    if name == "pay":
        run = ines.answer(run, APPROVE)
    task = ines.card(run)
    assert task.arguments == {"draft": "done: paid 1 to a"}
    with pytest.raises(Invalid):
        decisions.decide(task.pk, by=ines.person, answer="", digest=task.digest)
    run = ines.decide(task, "All is paid.")
    assert run.status == "finished", run.error
    assert last_words(run) == "All is paid."
    assert effects.count("draft_sent", text="All is paid.") == 1


# Breakpoints


@pytest.mark.parametrize(
    ("agent", "input", "stops"),
    [
        ("t-breakpoint", {"ask": "x"}, 1),
        ("t-breakpoint-after", {"ask": "x"}, 1),
        ("t-async-breakpoints", {"ask": "x"}, 2),
        ("t-held", script([LOOK]), 1),
        ("t-inner-stops", {"ask": "x"}, 2),
        ("t-async-inner-stops", {"ask": "x"}, 2),
        ("t-boss-of-the-held", script([call("delegate", task=as_task([LOOK]))]), 1),
    ],
)
def test_a_breakpoint_is_a_card_to_go_on(ines: Reviewer, agent: str, input: Json, stops: int) -> None:
    run = start(agent, input)
    for _ in range(stops):
        task = ines.card(run)
        assert task.kind == "continue"
        with pytest.raises(Invalid):
            decisions.decide(task.pk, by=ines.person, answer="stop", digest=task.digest)
        run = ines.decide(task, "continue")
    assert run.status == "finished", run.error
    assert effects.count("act") + effects.count("look") == 1
    assert run.pauses.count() == stops


# The legacy shape

LEGACY: dict[str, tuple[Json, Json]] = {
    "accept": (APPROVE, {"type": "accept", "args": None}),
    "edit": (
        edit("file_report", title="Q4"),
        {"type": "edit", "args": {"action": "file_report", "args": {"title": "Q4"}}},
    ),
    "respond": ({"type": "respond", "message": "later"}, {"type": "response", "args": "later"}),
    "ignore": ({"type": "reject"}, {"type": "ignore", "args": None}),
}


def test_a_legacy_request_offers_exactly_what_its_flags_allow(ines: Reviewer) -> None:
    for flags in product([False, True], repeat=4):
        allowed = [name for name, is_on in zip(LEGACY, flags, strict=True) if is_on]
        task = ines.card(start("t-legacy", {"ask": " ".join(allowed)}))
        offered = allowed or ["respond"]  # a request that allows nothing can still be told so
        for name in LEGACY.keys() - offered:
            with pytest.raises(Invalid):
                decisions.decide(task.pk, by=ines.person, answer=LEGACY[name][0], digest=task.digest)
        answer, wanted = LEGACY[offered[-1]]
        run = ines.decide(task, answer)
        assert run.status == "finished", (allowed, run.error)
        assert decode(run.output)["answers"] == [wanted], allowed


# Subagents


@pytest.mark.parametrize(("agent", "name"), [("t-boss", "pay"), ("t-async-boss", "apay")])
def test_two_subagents_ask_side_by_side_and_each_decision_reaches_its_own(
    ines: Reviewer, agent: str, name: str
) -> None:
    tasks = [as_task([call(name, to=to, amount=number) for number in (1, 2)]) for to in ("a", "b")]
    run = start(agent, script([*(call("delegate", task=task) for task in tasks), LOOK]))
    cards = {(task.arguments["to"], task.arguments["amount"]): task for task in ines.cards(run)}
    assert len(cards) == 4
    ines.decide(cards["a", 2], REJECT)
    ines.decide(cards["b", 1], edit(name, to="b", amount=7))
    ines.decide(cards["a", 1], APPROVE)
    run = ines.decide(cards["b", 2], APPROVE)
    assert run.status == "finished", run.error
    paid = sorted((e["to"], e["amount"]) for e in effects.all_effects() if e["name"] == name)
    assert paid == [("a", 1), ("b", 2), ("b", 7)]
    assert effects.count("look") == 1


def test_a_batch_of_a_subagent_is_asked_about_call_by_call(ines: Reviewer) -> None:
    run = start("t-boss-of-batches", script([call("delegate", task=as_task([PAY, DROP, LOOK]))]))
    pay, drop = ines.cards(run)
    ines.decide(drop, REJECT)
    run = ines.decide(pay, edit("pay", to="a", amount=3))
    assert run.status == "finished", run.error
    assert effects.count("pay", amount=3) == effects.count("pay") == effects.count("look") == 1
    assert effects.count("drop") == 0


@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        (APPROVE, 1),
        (edit("pay", to="a", amount=8), 8),
        (REJECT, 0),
        ({"type": "respond", "message": "paid by hand"}, 0),
    ],
    ids=["approve", "edit", "reject", "respond"],
)
@pytest.mark.parametrize("agent", ["t-boss", "t-deep", "t-deep-per-call"])
def test_every_decision_works_in_a_subagent(ines: Reviewer, agent: str, answer: Json, paid: int) -> None:
    given = call("delegate", task=as_task([PAY])) if agent == "t-boss" else delegated(PAY)
    run = ines.answer(start(agent, script([given])), answer)
    assert run.status == "finished", run.error
    assert effects.count("pay") == bool(paid)
    assert effects.count("pay", amount=paid) == bool(paid)


# Deep Agents


def test_a_deep_agent_and_its_subagents_each_ask_by_their_own_gates(ines: Reviewer) -> None:
    helper, clerk = delegated(PAY, LOOK), delegated(DROP, LOOK, to="clerk")
    run = start("t-deep", script([PAY], [helper, clerk]))
    task = ines.card(run)
    assert (task.tool, task.pause.kind) == ("pay", "batched")
    run = ines.decide(task, APPROVE)
    asked = {task.tool: task for task in ines.cards(run)}
    assert set(asked) == {"pay", "drop"}
    ines.decide(asked["pay"], REJECT)
    run = ines.decide(asked["drop"], APPROVE)
    assert run.status == "finished", run.error
    assert (effects.count("pay"), effects.count("drop"), effects.count("look")) == (1, 1, 2)


@pytest.mark.parametrize("calls", [[DROP], [delegated(PAY, to="clerk")]], ids=["main", "clerk"])
def test_a_tool_that_one_agent_of_a_graph_gates_is_gated_for_all_of_them(
    ines: Reviewer, calls: list[dict[str, Json]]
) -> None:
    run = start("t-deep", script(calls))
    assert run.status == "failed"
    assert "nobody was asked" in run.error
    assert effects.all_effects() == []


@pytest.mark.parametrize(("agent", "name"), [("t-deep-per-call", "pay"), ("t-deep-async", "apay")])
def test_a_deep_agent_that_asks_per_call_asks_for_its_general_purpose_subagent_too(
    ines: Reviewer, agent: str, name: str
) -> None:
    mine, theirs = call(name, to="a", amount=1), call(name, to="b", amount=2)
    run = start(agent, script([mine, delegated(theirs, LOOK)]))
    cards = {task.arguments["to"]: task for task in ines.cards(run)}
    assert set(cards) == {"a", "b"}
    assert {task.pause.kind for task in cards.values()} == {"per_call"}
    ines.decide(cards["b"], REJECT)
    run = ines.decide(cards["a"], APPROVE)
    assert run.status == "finished", run.error
    assert effects.count(name, to="a") == effects.count(name) == effects.count("look") == 1


def test_a_subagent_that_the_library_leaves_ungated_is_stopped_by_our_gate(ines: Reviewer) -> None:
    run = start("t-deep-half", script([delegated(PAY)]))
    assert run.status == "failed"
    assert "nobody was asked" in run.error
    assert effects.count("pay_began") == 0


@pytest.mark.parametrize("agent", ["t-deep-permissions", "t-deep-permissions-per-call"])
def test_a_permission_that_interrupts_is_a_card_and_other_paths_are_not(ines: Reviewer, agent: str) -> None:
    def write(path: str) -> dict[str, Json]:
        return call("write_file", file_path=path, content="42")

    run = start(agent, script([write("/notes/a")], [write("/secrets/b")], [write("/secrets/c")]))
    task = ines.card(run)
    assert (task.tool, task.arguments["file_path"]) == ("write_file", "/secrets/b")
    run = ines.decide(task, REJECT)
    run = ines.answer(run, APPROVE)
    assert run.status == "finished", run.error
    assert set(decode(run.output)["files"]) == {"/notes/a", "/secrets/c"}
