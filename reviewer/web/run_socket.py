"""The socket of a run's page: the story as it grows, the text as it is written, and the rail's numbers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from reviewer import live, queries
from reviewer.accounts.models import User
from reviewer.errors import NotFound
from reviewer.web.channel import LiveConsumer
from reviewer.web.fragments import rail_fragment
from reviewer.web.run import run_context

RAIL_APART = 2.0  # seconds


@dataclass
class _Noted:
    """What changed since the last push."""

    run: bool = False
    rail: bool = False


class RunConsumer(LiveConsumer):
    """Pushes to one open page what its run does. Forms are never pushed: the page asks for them itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._noted = _Noted()
        self._tasks: frozenset[str] = frozenset()
        self._steer_key = ""
        self._rail_at = 0.0

    @property
    def run_id(self) -> UUID:
        """The run that the page shows."""
        found: UUID = self.scope["url_route"]["kwargs"]["run_id"]
        return found

    def groups_of(self, person: User) -> set[str]:
        """Join the person's group and their queues' for the rail, and the run's while they may see it."""
        queues = queries.visible_queues(person).values_list("pk", flat=True)
        groups = {live.user_group(person.pk), *(live.queue_group(pk) for pk in queues)}
        may_see = queries.visible_runs(person).filter(pk=self.run_id).exists()
        return groups | {live.run_group(self.run_id)} if may_see else groups

    async def run_hint(self, event: dict[str, Any]) -> None:  # noqa: ARG002  the channel layer gives it
        """The run did something: draw it with the next push."""
        self._noted.run = True
        self.wake()

    async def task_hint(self, event: dict[str, Any]) -> None:
        """A task changed: the rail's numbers, and the run where the task is one of its own."""
        self._noted.rail = True
        self._noted.run = self._noted.run or event["task"] in self._tasks
        self.wake()

    async def run_tokens(self, event: dict[str, Any]) -> None:
        """Pass on new text as it is; the runtime sends it in batches."""
        await self.send(text_data=json.dumps({"tokens": event["tokens"]}))

    def heard(self, said: dict[str, Any]) -> None:  # noqa: ARG002
        """Catch up: the page speaks once after each connection."""
        self._noted = _Noted(run=True, rail=True)
        self._steer_key = ""

    def rights_changed(self) -> None:
        """Draw the run again, or say that it is gone."""
        self._noted = _Noted(run=True, rail=True)

    def take(self) -> _Noted:
        """Hand over the notes; the rail's numbers wait for their turn."""
        noted, self._noted = self._noted, _Noted()
        wait = self._rail_at + RAIL_APART - time.monotonic()
        if noted.rail and wait > 0:
            noted.rail, self._noted.rail = False, True
            self.wake(after=wait)
        elif noted.rail:
            self._rail_at = time.monotonic()
        return noted

    def draw(self, person: User, noted: _Noted) -> str:
        """Draw what changed since the last push."""
        drawn = self._run(person) if noted.run else ""
        return drawn + rail_fragment(person) if noted.rail else drawn

    def _run(self, person: User) -> str:
        try:
            found = queries.get_run(person, self.run_id)
        except NotFound:
            return render_to_string("runs/gone_push.html")
        context = run_context(person, found)
        self._tasks = frozenset(str(task.pk) for task in context["story"].tasks)
        is_new = context["steer_key"] != self._steer_key
        self._steer_key = context["steer_key"]
        return render_to_string("runs/push.html", context | {"steer_changed": is_new})
