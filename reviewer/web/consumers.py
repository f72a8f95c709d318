"""The inbox's socket: rows as tasks come, change and go, the open card's state, and the rail's numbers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString

from agents_runtime.canonical import storable
from reviewer import live, queries
from reviewer.accounts.models import User
from reviewer.models import ReviewTask
from reviewer.queries import InboxFilter
from reviewer.web.channel import LiveConsumer
from reviewer.web.fragments import (
    elsewhere_fragment,
    gone_fragment,
    no_card_fragment,
    rail_fragment,
    row_fragment,
    state_fragment,
)

MOST_KNOWN = 1000
MOST_ROWS = 200
RAIL_APART = 1.0  # seconds


@dataclass
class _Noted:
    """What the page said and what hints came since the last push."""

    list: InboxFilter | None = None
    card: str = ""
    known: dict[str, int] | None = None
    hinted: set[str] = field(default_factory=set)
    rights_changed: bool = False
    card_asked: bool = False
    rail: bool = False


class InboxConsumer(LiveConsumer):
    """Pushes to one open page what changed in the queues its person may see."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._noted = _Noted()
        self._rail_at = 0.0

    def groups_of(self, person: User) -> set[str]:
        """Join the person's own group and those of the queues they may see."""
        queues = queries.visible_queues(person).values_list("pk", flat=True)
        return {live.user_group(person.pk), *(live.queue_group(pk) for pk in queues)}

    async def task_hint(self, event: dict[str, Any]) -> None:
        """A task changed: draw it with the next push."""
        self._noted.hinted.add(event["task"])
        self._noted.rail = True
        self.wake()

    def heard(self, said: dict[str, Any]) -> None:
        """Take the page's list, the versions it knows, and the card it shows."""
        noted = self._noted
        hello, known, card = said.get("hello"), said.get("known"), said.get("card")
        if isinstance(hello, dict):
            noted.list = InboxFilter(
                scope=str(hello.get("view") or "waiting"),
                queue=storable(str(hello.get("queue") or "")),
                text=storable(str(hello.get("query") or "")),
            )
        if isinstance(known, dict):
            versions = {key: version for key, version in known.items() if isinstance(version, int)}
            noted.known = dict(list(versions.items())[:MOST_KNOWN])
            noted.rail = True
        if isinstance(card, str):
            noted.card = card
            noted.card_asked = True

    def rights_changed(self) -> None:
        """Take away what may not be seen any more, and look for what may be seen now."""
        self._noted.rights_changed = self._noted.card_asked = self._noted.rail = True
        self._noted.known = self._noted.known or {}

    def take(self) -> _Noted:
        """Hand over the notes; what the page shows stays noted. The rail's numbers wait for their second."""
        noted = self._noted
        self._noted = _Noted(list=noted.list, card=noted.card)
        if noted.rail:
            wait = self._rail_at + RAIL_APART - time.monotonic()
            if wait > 0:
                noted.rail, self._noted.rail = False, True
                self.wake(after=wait)
            else:
                self._rail_at = time.monotonic()
        return noted

    def draw(self, person: User, noted: _Noted) -> str:
        """Draw everything that changed since the last push."""
        parts: list[SafeString] = []
        if noted.rights_changed:
            parts.append(elsewhere_fragment(queries.visible_queues(person).values_list("pk", flat=True)))
        if noted.known is not None:
            parts += _caught_up(person, noted.list, dict(noted.known))
        if noted.hinted:
            parts += _changed(person, noted.list, noted.hinted)
        if noted.card and (noted.card_asked or noted.card in noted.hinted):
            parts.append(_card(person, noted.card))
        if noted.rail:
            parts.append(rail_fragment(person))
        return "".join(parts)


def _caught_up(person: User, wanted: InboxFilter | None, known: dict[str, int]) -> list[SafeString]:
    """Compare what the page knows with what is true: new rows, changed rows, rows that are gone."""
    parts: list[SafeString] = []
    if wanted is not None and wanted.scope != "decided":
        waiting = list(queries.inbox(person, wanted)[:MOST_ROWS])
        parts = [
            row_fragment(task, person, arrives=True)
            for task in waiting
            if known.pop(str(task.pk), None) != task.version
        ]
    rest = _tasks(person, known)
    parts += [
        row_fragment(task, person, arrives=False) for key, task in rest.items() if task.version != known[key]
    ]
    return parts + [gone_fragment(key) for key in known.keys() - rest.keys() if _is_uuid(key)]


def _changed(person: User, wanted: InboxFilter | None, hinted: set[str]) -> list[SafeString]:
    tasks = _tasks(person, hinted)
    arriving = _arriving(person, wanted, tasks)
    parts = [row_fragment(task, person, arrives=key in arriving) for key, task in tasks.items()]
    return parts + [gone_fragment(key) for key in hinted - tasks.keys()]


def _arriving(person: User, wanted: InboxFilter | None, tasks: dict[str, ReviewTask]) -> set[str]:
    """Return which of the tasks belong in the list that the page shows."""
    if wanted is None or wanted.scope == "decided" or not tasks:
        return set()
    found = queries.inbox(person, wanted).filter(pk__in=list(tasks)).values_list("pk", flat=True)
    return {str(pk) for pk in found}


def _card(person: User, card: str) -> SafeString:
    task = _tasks(person, [card]).get(card)
    return state_fragment(task, person) if task else no_card_fragment(card)


def _tasks(person: User, keys: Iterable[str]) -> dict[str, ReviewTask]:
    wanted = [key for key in keys if _is_uuid(key)]
    return {str(task.pk): task for task in queries.visible_tasks(person).filter(pk__in=wanted)}


def _is_uuid(key: str) -> bool:
    try:
        UUID(key)
    except ValueError:
        return False
    return True
