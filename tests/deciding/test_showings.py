"""What was shown is kept: once for each digest, renderer and language, by its content, and for good."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import InternalError, ProgrammingError, connection, transaction
from django.template import Engine
from django.test import Client
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_runtime.canonical import Json, decode, encode_in_order
from agents_runtime.desk import ReviewRequest
from agents_runtime.states import PauseStatus
from reviewer import decisions, openings, shown
from reviewer.accounts.models import User
from reviewer.audit.verify import verify
from reviewer.cards.diff import Change
from reviewer.models import AuditEvent, Decision, ReviewTask, Showing, Snapshot
from tests.cast import Cast
from tests.deciding.making import APPROVE, REJECT, decision_schema, pause_run
from tests.servers import servers
from tests.web.markup import Markup, read
from tests.web.stories import EDITED, close, open_task

ClientOf = Callable[..., Client]


def open_on_page(task: ReviewTask, client: Client) -> Showing:
    """Open a task's page and return what was kept of it."""
    assert client.get(f"/tasks/{task.pk}/").status_code == 200
    return Showing.objects.filter(task=task).latest("pk")


def decide(task: ReviewTask, cast: Cast, answer: object = APPROVE, *, via: str = "web") -> Decision:
    return decisions.decide(task.pk, by=cast.reviewer, answer=answer, digest=task.digest, via=via)


def long_text(task_text: str, *, risk: str = "low") -> ReviewRequest:
    return ReviewRequest(
        position=0,
        kind="tool_call",
        tool="publish",
        tool_call_id="call-0",
        arguments={"body": task_text},
        response_schema=decision_schema("publish", {"type": "object"}),
        risk=risk,
    )


def test_a_card_is_kept_once_for_each_renderer_and_language_however_often_it_is_opened(
    cast: Cast, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = open_task(cast)
    for person in (cast.reviewer, cast.reviewer2, cast.reviewer):
        open_on_page(task, client_of(person))
    assert Showing.objects.filter(task=task).count() == 1
    with translation.override("de"):
        openings.opened(task, by=cast.reviewer, via="web")
    monkeypatch.setattr(openings, "RENDERER_VERSION", 7)
    open_on_page(task, client_of(cast.reviewer))
    kept = Showing.objects.filter(task=task).values_list("renderer_version", "language")
    assert sorted(kept) == sorted([(shown_version(), "en"), (shown_version(), "de"), (7, "en")])
    assert {one.digest for one in Showing.objects.filter(task=task)} == {task.digest}
    assert AuditEvent.objects.filter(type="card.opened", task_id=task.pk).count() == 4


def shown_version() -> int:
    return min(Showing.objects.values_list("renderer_version", flat=True))


def test_the_same_drawing_is_stored_once_and_named_by_its_content(cast: Cast, client_of: ClientOf) -> None:
    first, second = open_task(cast), open_task(cast)
    client = client_of(cast.reviewer)
    assert open_on_page(first, client).snapshot_id == open_on_page(second, client).snapshot_id
    snapshot = Snapshot.objects.get()
    assert snapshot.sha256 == hashlib.sha256(snapshot.html.encode()).hexdigest()


def test_many_who_open_a_card_at_once_keep_it_once(cast: Cast, committed_db: None) -> None:
    task = open_task(cast)
    people = [person for person in cast.people.values() if person != cast.outsider]

    def look(person: User) -> None:
        try:
            openings.opened(task, by=person, via="web")
        finally:
            connection.close()

    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(look, people))
    assert Snapshot.objects.count() == Showing.objects.count() == 1
    assert task.openings.count() == len(people)


def test_the_database_takes_no_drawing_under_a_false_name(db: None) -> None:
    with pytest.raises(Exception, match="snapshot_is_named_by_its_content"), transaction.atomic():
        Snapshot.objects.create(sha256="0" * 64, html="<p>ok</p>")


@pytest.mark.parametrize("table", ["snapshot", "showing", "expansion"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET {} = {}", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_application_cannot_change_or_delete_what_is_kept(
    cast: Cast, client_of: ClientOf, table: str, statement: str
) -> None:
    task = open_long(cast)
    open_on_page(task, client_of(cast.reviewer))
    client_of(cast.reviewer).get(f"/tasks/{task.pk}/?show=all")
    column = {"snapshot": "html", "showing": "language", "expansion": "pointer"}[table]
    told = r"permission denied|append-only|Cannot"
    with pytest.raises((ProgrammingError, InternalError), match=told), transaction.atomic():
        connection.cursor().execute(statement.format(f"reviewer_{table}", column, column))


@pytest.mark.parametrize("table", ["snapshot", "showing", "expansion"])
def test_even_the_owner_meets_a_trigger(
    cast: Cast, committed_db: None, client_of: ClientOf, table: str
) -> None:
    task = open_long(cast)
    client_of(cast.reviewer).get(f"/tasks/{task.pk}/?show=all")
    column = {"snapshot": "html", "showing": "language", "expansion": "pointer"}[table]
    for statement in (f"UPDATE reviewer_{table} SET {column} = {column}", f"DELETE FROM reviewer_{table}"):
        with psycopg.connect(servers().owner_url) as link, pytest.raises(psycopg.Error, match="Cannot"):
            link.execute(statement)
    with psycopg.connect(servers().owner_url) as link, pytest.raises(psycopg.Error, match="append-only"):
        link.execute(f"TRUNCATE reviewer_{table} CASCADE")


def open_long(cast: Cast, text: str = "word " * 100) -> ReviewTask:
    return pause_run(long_text(text, risk="high"), by=cast.developer).tasks.get()


def test_what_is_kept_is_what_the_open_page_shows(cast: Cast, client_of: ClientOf) -> None:
    said = "## Why\n\nCharged **twice**, see [the log](https://e.example/x).\u200b\n\n- one\n- two"
    task = open_task(cast, said=said)
    page = client_of(cast.reviewer).get(f"/tasks/{task.pk}/").content.decode()
    html = Showing.objects.get(task=task).snapshot.html
    for part in ('<dl class="kv">', '<div class="prose"'):
        kept, open_ = (text[text.index(part) :] for text in (html, page))
        end = "</dl>" if part.startswith("<dl") else "</details>"
        assert kept.partition(end)[0] == open_.partition(end)[0]
    assert "1 hidden character shown" in Markup(html).text
    assert "1 hidden character shown" in Markup(page).text


def test_what_is_kept_has_nothing_to_press_to_send_or_to_run(cast: Cast, client_of: ClientOf) -> None:
    said = "<script>alert(1)</script><form action=/x><input name=csrfmiddlewaretoken></form>\u202eevil"
    task = open_task(cast, said=said)
    html = open_on_page(task, client_of(cast.reviewer)).snapshot.html
    page = Markup(html)
    dead = {"form", "input", "button", "textarea", "select", "script", "style", "a", "iframe", "img"}
    assert dead.isdisjoint(element.tag for element in page.elements)
    assert page.inline == []
    assert not [
        name for element in page.elements for name in element.attributes if name.startswith(("hx-", "on"))
    ]
    assert {element.attributes["href"].split("#")[0] for element in page.all("use")} == {"sprite.svg"}
    for words in ("Refund 18.40 for order A-1001", "issue_refund", "A-1001", "U+202E", "evil", "High risk"):
        assert words in page.text
    assert task.policy_label in page.text


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(
        st.sampled_from("ab <>&\"'\u202e\u200b\u0000\ud800\U0001f600\n{}%#") | st.characters(), max_size=400
    )
)
def test_any_text_can_be_kept_as_inert_html(text: str) -> None:
    drawing = shown.inert_drawing(unsaved({"body": text, text: [text]}, said=text.replace("\x00", "")))
    assert hashlib.sha256(drawing.html.encode()).hexdigest() == drawing.sha256
    assert "\x00" not in drawing.html
    tags = {element.tag for element in Markup(drawing.html).elements}
    assert {"script", "form", "input", "a", "img"}.isdisjoint(tags)


def test_a_long_text_is_kept_whole_and_a_huge_one_by_its_ends_length_and_hash(
    cast: Cast, client_of: ClientOf
) -> None:
    long = "START " + "word " * 2_000 + "END"
    huge = "BEGIN " + "lorem ipsum " * 87_000 + "pay to EVIL"
    kept = [
        open_on_page(pause_run(long_text(text), by=cast.developer).tasks.get(), client_of(cast.reviewer))
        for text in (long, huge)
    ]
    first, second = (one.snapshot.html for one in kept)
    assert long in first
    assert len(second) < 5_000
    assert hashlib.sha256(huge.encode()).hexdigest() in second
    for words in ("BEGIN", "pay to EVIL", f"{len(huge)} characters in all"):
        assert words in second


def test_a_text_of_nothing_but_hidden_characters_stays_within_the_limit(db: None) -> None:
    task = unsaved({"body": "\u200b" * 20_000}, said="\u200b" * 20_000)
    assert len(shown.inert_drawing(task).html) < shown.MOST_HTML


def unsaved(arguments: Json, *, said: str = "") -> ReviewTask:
    return ReviewTask(
        title="t", tool="publish", agent="a", risk="high", policy_label="p v1", digest="0" * 64, refusal="[]",
        action=encode_in_order(arguments), response_schema="true", args_schema="null", said=said,
        description="",
    )  # fmt: skip


def test_an_old_card_is_shown_as_it_was_after_its_templates_changed(
    cast: Cast, client_of: ClientOf, changed_templates: Callable[[], None]
) -> None:
    task = open_task(cast)
    open_on_page(task, client_of(cast.reviewer))
    decide(task, cast)
    before = kept_part(client_of(cast.auditor).get(f"/tasks/{task.pk}/").content.decode())
    changed_templates()
    page = client_of(cast.auditor).get(f"/tasks/{task.pk}/")
    fresh = shown.inert_drawing(task).html
    assert "DRAWN BY ANOTHER RELEASE" in fresh
    assert "DRAWN BY ANOTHER RELEASE" not in page.content.decode()
    assert kept_part(page.content.decode()) == before
    text = read(page).text
    assert f"Drawn by card renderer {shown_version()} in English" in text
    assert "As it was shown to Ines H." in text


def kept_part(page: str) -> str:
    return page.partition('<div class="kept">')[2].partition('<p class="kept__source">')[0]


@pytest.fixture
def changed_templates(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the rows of a card be drawn by another template, as a later release might."""
    engine = Engine.get_default()
    other = {"cards/kv.html": "<p>DRAWN BY ANOTHER RELEASE {{ rows|length }}</p>"}
    loaders = engine.get_template_loaders([("django.template.loaders.locmem.Loader", other)])
    return lambda: monkeypatch.setitem(
        engine.__dict__, "template_loaders", [*loaders, *engine.template_loaders]
    )


def test_a_decision_names_the_drawing_that_this_person_had_before_them(
    cast: Cast, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = open_task(cast)
    monkeypatch.setattr(openings, "RENDERER_VERSION", 5)
    mine = open_on_page(task, client_of(cast.reviewer))
    monkeypatch.setattr(openings, "RENDERER_VERSION", 6)
    open_on_page(task, client_of(cast.reviewer2))
    decision = decide(task, cast)
    assert decision.showing == mine
    told = decode(AuditEvent.objects.get(type="decision.made").payload)["facts"]
    assert (told["shown"], told["renderer"], told["language"]) == (mine.snapshot_id, 5, "en")


def test_who_changed_the_language_decides_on_the_drawing_in_that_language(cast: Cast) -> None:
    task = open_task(cast)
    for language in ("en", "de", "en"):
        with translation.override(language):
            openings.opened(task, by=cast.reviewer, via="web")
    with translation.override("en"):
        decision = decide(task, cast)
    assert decision.showing is not None
    assert decision.showing.language == "en"


def test_a_decision_through_the_api_was_made_on_no_drawing_and_the_page_says_so(
    cast: Cast, client_of: ClientOf
) -> None:
    task = open_task(cast)
    openings.opened(task, by=cast.reviewer, via="api")
    assert decide(task, cast, via="api").showing is None
    assert not Showing.objects.exists()
    text = read(client_of(cast.auditor).get(f"/tasks/{task.pk}/")).text
    assert "Decided through the API, which gives the card as data. Drawn from the record." in text
    assert "A-1001" in text


def test_a_card_that_nobody_decided_is_shown_as_it_was_too(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    open_on_page(task, client_of(cast.reviewer))
    close(task, PauseStatus.WITHDRAWN)
    text = read(client_of(cast.reviewer).get(f"/tasks/{task.pk}/")).text
    assert "As it was shown last" in text
    assert "Drawn by card renderer" in text


def test_opening_a_closed_card_keeps_nothing(cast: Cast, client_of: ClientOf) -> None:
    task = close(open_task(cast), PauseStatus.WITHDRAWN)
    text = read(client_of(cast.reviewer).get(f"/tasks/{task.pk}/")).text
    assert not Showing.objects.exists()
    assert "Nobody had this card open on a page. Drawn from the record." in text


def test_a_kept_card_that_was_tampered_with_is_not_shown_and_verify_says_so(
    cast: Cast, committed_db: None, client_of: ClientOf
) -> None:
    task = open_task(cast)
    open_on_page(task, client_of(cast.reviewer))
    decide(task, cast)
    assert verify().is_sound
    tamper("UPDATE reviewer_snapshot SET html = replace(html, '18.40', '1.84')")
    page = client_of(cast.auditor).get(f"/tasks/{task.pk}/")
    assert "no longer matches its SHA-256" in read(page).text
    assert b"1.84" not in page.content
    assert any("its HTML is not the one that was kept" in fault for fault in verify().faults)


def test_a_decision_that_is_said_to_be_made_on_another_drawing_is_found(
    cast: Cast, committed_db: None, client_of: ClientOf
) -> None:
    task, other = open_task(cast, order="A-1"), open_task(cast, order="A-2")
    for one in (task, other):
        open_on_page(one, client_of(cast.reviewer))
    decide(task, cast)
    tamper("UPDATE reviewer_showing SET snapshot_id = (SELECT max(sha256) FROM reviewer_snapshot)")
    tamper("UPDATE reviewer_decision SET changes = '[1]'")
    faults = " ".join(verify().faults)
    assert "its difference differs" in faults
    tamper("UPDATE reviewer_showing SET snapshot_id = (SELECT min(sha256) FROM reviewer_snapshot)")
    assert "its card as shown differs" in faults + " ".join(verify().faults)


def tamper(statement: str) -> None:
    """Change what is kept as the owner of the database could: past triggers and constraint."""
    name = "snapshot_is_named_by_its_content"
    with psycopg.connect(servers().superuser_url) as link:
        link.execute("SET LOCAL session_replication_role = replica")
        rule = link.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name]
        ).fetchone()
        assert rule is not None
        link.execute(f"ALTER TABLE reviewer_snapshot DROP CONSTRAINT {name}")
        link.execute(statement)
        again = rule[0].removesuffix(" NOT VALID")
        link.execute(f"ALTER TABLE reviewer_snapshot ADD CONSTRAINT {name} {again} NOT VALID")


# The difference kept with a decision


def test_what_an_edit_changed_is_kept_with_the_decision_and_in_the_trail(cast: Cast) -> None:
    decision = decide(open_task(cast), cast, EDITED)
    (change,) = [Change.from_json(told) for told in decode(decision.changes)]
    assert (change.pointer, change.kind, change.before, change.after) == (
        "/amount", "changed", "18.40", "9.20",
    )  # fmt: skip
    told = decode(AuditEvent.objects.get(type="decision.made").payload)["facts"]
    assert told["changes"] == decision.changes


@pytest.mark.parametrize("answer", [APPROVE, REJECT])
def test_other_decisions_keep_that_they_changed_nothing(cast: Cast, answer: object) -> None:
    assert decide(open_task(cast), cast, answer).changes == "[]"


def test_the_difference_is_shown_as_kept_even_if_todays_code_would_tell_another(
    cast: Cast, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = open_task(cast)
    decide(task, cast, EDITED)
    monkeypatch.setattr("reviewer.cards.card.diff", lambda *_: ())
    for page in (f"/tasks/{task.pk}/", f"/audit/{AuditEvent.objects.get(type='decision.made').pk}/"):
        found = read(client_of(cast.auditor).get(page))
        assert [element.tag for element in found.elements if element.tag in {"del", "ins"}] == ["del", "ins"]


def test_a_decision_from_before_differences_were_kept_still_tells_its_own(cast: Cast) -> None:
    task = open_task(cast)
    decision = decide(task, cast, EDITED)
    decision.changes = ""
    assert [change.pointer for change in shown.changes_of(task, decision)] == ["/amount"]


def test_an_edited_card_shows_all_arguments_as_they_were_sent(cast: Cast, client_of: ClientOf) -> None:
    task = open_task(cast)
    open_on_page(task, client_of(cast.reviewer))
    decide(task, cast, EDITED)
    text = read(client_of(cast.reviewer).get(f"/tasks/{task.pk}/")).text
    sent = text.split("All arguments, as they were sent")[1]
    assert "9.20" in sent.split("What was proposed")[0]
    assert "18.40" in sent.split("What was proposed")[1]


def test_a_changed_secret_is_told_without_its_value(cast: Cast, client_of: ClientOf) -> None:
    request = ReviewRequest(
        position=0, kind="tool_call", tool="connect",
        arguments={"api_key": "sk-live-0123456789old", "to": "a"},
        response_schema=decision_schema("connect", {"type": "object"}), risk="low",
    )  # fmt: skip
    task = pause_run(request, by=cast.developer).tasks.get()
    args = {"api_key": "sk-live-0123456789new", "to": "b"}
    decide(task, cast, {"type": "edit", "edited_action": {"name": "connect", "args": args}})
    for page in (f"/runs/{task.run_id}/", f"/tasks/{task.pk}/"):
        text = client_of(cast.reviewer).get(page).content.decode()
        assert "to: “a” became “b”" in text or "to</code>" in text
        assert "0123456789new" not in text
        assert "0123456789old" not in text
