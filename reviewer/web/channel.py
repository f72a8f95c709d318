"""What every socket does: lets in people with a living session, checks again while open, gathers hints.

The socket only pushes. A hint names what changed; what is pushed is read from the database with the person's
own rights at that moment. Nothing that arrives here changes anything.
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from typing import Any

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.utils import translation
from django.utils.crypto import constant_time_compare

from reviewer import live
from reviewer.accounts.models import User

log = structlog.get_logger(__name__)

SIGNED_OUT = 4401
BROKEN = 1011
CHECK_EVERY = 20.0  # seconds
PUSHES_APART = 0.2  # seconds: at most five pushes a second
LONGEST_MESSAGE = 64_000


class LiveConsumer(AsyncWebsocketConsumer):
    """Base of the sockets. Subclasses say which groups to join, what a hint marks, and what a push holds."""

    person: User
    language: str
    joined: set[str]

    async def connect(self) -> None:
        """Let a signed-in person in; tell anybody else to sign in."""
        await self.accept()
        person = await self._living_person()
        if person is None:
            await self.close(SIGNED_OUT)
            return
        self.person = person
        self.language = settings.LANGUAGE_CODE
        self.joined = set()
        self._woken = asyncio.Event()
        # Their own group first: whatever changes after the next line is read, that group tells of.
        await self._join({live.user_group(person.pk)})
        await self._join(await database_sync_to_async(self.groups_of)(person))
        self._work = [asyncio.create_task(self._push_forever()), asyncio.create_task(self._check_forever())]
        for work in self._work:
            work.add_done_callback(self._stopped)

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Leave every group and stop."""
        for work in getattr(self, "_work", ()):
            work.cancel()
        for group in getattr(self, "joined", ()):
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Take what the page says about itself; anything else is ignored."""
        if not text_data or len(text_data) > LONGEST_MESSAGE or not hasattr(self, "joined"):
            return
        try:
            said = json.loads(text_data)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, dict):
            return
        language = said.get("language")
        if isinstance(language, str) and language in dict(settings.LANGUAGES):
            self.language = language
        self.heard(said)
        self.wake()

    async def user_hint(self, event: dict[str, Any]) -> None:  # noqa: ARG002
        """This person's rights changed: check at once."""
        await self._check()

    def groups_of(self, person: User) -> set[str]:
        """Return the groups that this person may listen to. Reads the database."""
        return {live.user_group(person.pk)}

    def heard(self, said: dict[str, Any]) -> None:
        """Note what the page said about itself."""

    def rights_changed(self) -> None:
        """Note that the person may see other things than before."""

    def take(self) -> Any:
        """Hand over what was noted since the last push, and begin anew."""
        return None

    def draw(self, person: User, noted: Any) -> str:
        """Return what to push for what was noted, or nothing. Reads the database, in the page's language."""
        raise NotImplementedError

    def wake(self, *, after: float = 0.0) -> None:
        """Ask for a push soon, or in so many seconds. Only from the event loop."""
        if after:
            asyncio.get_running_loop().call_later(after, self._woken.set)
        else:
            self._woken.set()

    async def _push_forever(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            pushed = await database_sync_to_async(self._draw)(self.take())
            if pushed:
                await self.send(text_data=pushed)
            await asyncio.sleep(PUSHES_APART)

    def _draw(self, noted: Any) -> str:
        with translation.override(self.language):
            return self.draw(self.person, noted)

    async def _check_forever(self) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            await self._check()

    async def _check(self) -> None:
        """Close unless the session still lives; follow what the person may see."""
        if not hasattr(self, "joined"):
            return
        person = await self._living_person()
        if person is None or person.session_epoch != self.person.session_epoch:
            await self.close(SIGNED_OUT)
            return
        self.person = person
        wanted = await database_sync_to_async(self.groups_of)(person)
        if wanted == self.joined:
            return
        for group in self.joined - wanted:
            await self.channel_layer.group_discard(group, self.channel_name)
        self.joined &= wanted
        await self._join(wanted)
        self.rights_changed()
        self.wake()

    async def _join(self, wanted: set[str]) -> None:
        for group in sorted(wanted - self.joined):
            await self.channel_layer.group_add(group, self.channel_name)
            self.joined.add(group)

    async def _living_person(self) -> User | None:
        key = getattr(self.scope.get("session"), "session_key", None)
        return await database_sync_to_async(person_of_session)(key) if key else None

    def _stopped(self, work: asyncio.Task[None]) -> None:
        """A push or a check broke: close, so that the page connects again and catches up."""
        if work.cancelled() or work.exception() is None:
            return
        log.error("socket_broke", exc_info=work.exception())
        self._closing = asyncio.get_running_loop().create_task(self.close(BROKEN))


def person_of_session(key: str) -> User | None:
    """Return the active person whose living session this is, or None; reads the session afresh."""
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key=key)
    user = User.objects.filter(pk=store.get(SESSION_KEY), is_active=True).first()
    if user is None:
        return None
    is_same = constant_time_compare(store.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
    return user if is_same else None
