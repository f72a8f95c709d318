"""What people had before them: cards as they were drawn, and the hidden parts that they opened. Evidence.

All of it is append-only. The drawing itself is named by its content, so that what was shown twice is stored
once; a showing says which card it is, on which digest, drawn by which renderer in which language.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pgtrigger
from django.db import models
from django.db.models import Func
from django.db.models.functions import Now

from reviewer.accounts.models import User

APPEND_ONLY = pgtrigger.Update | pgtrigger.Delete


class Sha256(Func):
    """The SHA-256 of a text's UTF-8, as 64 lower hex digits, computed by the database."""

    template = "encode(sha256(convert_to(%(expressions)s, 'UTF8')), 'hex')"
    output_field: ClassVar[Any] = models.CharField(max_length=64)


def _never_emptied(name: str) -> pgtrigger.Trigger:
    """Return the trigger that refuses TRUNCATE, which ``Protect`` does not know."""
    return pgtrigger.Trigger(
        name=name,
        operation=pgtrigger.Truncate,
        level=pgtrigger.Statement,
        when=pgtrigger.Before,
        func="RAISE EXCEPTION 'Evidence is append-only: TRUNCATE of % is refused.', TG_TABLE_NAME;",
    )


class Snapshot(models.Model):
    """The inert HTML of a card as it was drawn once: no form, no script, no address that could go stale."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    html = models.TextField()
    kept_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(sha256=Sha256("html")), name="snapshot_is_named_by_its_content"
            ),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="snapshot_is_final", operation=APPEND_ONLY),
            _never_emptied("snapshots_are_never_emptied"),
        ]

    def __str__(self) -> str:
        return self.sha256


class Showing(models.Model):
    """That a card was drawn for people: once for each digest, version of the renderer and language.

    The task belongs to the key: its title, the agent's own words and an earlier refusal are on the card, too,
    and the digest does not cover them.
    """

    task = models.ForeignKey("ReviewTask", on_delete=models.PROTECT, related_name="showings")
    digest = models.CharField(max_length=64)
    renderer_version = models.PositiveIntegerField()
    language = models.CharField(max_length=20)
    snapshot = models.ForeignKey(Snapshot, on_delete=models.PROTECT, related_name="showings")
    first_shown_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["task", "digest", "renderer_version", "language"], name="showing_is_kept_once"
            ),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="showing_is_final", operation=APPEND_ONLY),
            _never_emptied("showings_are_never_emptied"),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} by renderer {self.renderer_version} in {self.language}"


class Expansion(models.Model):
    """That a person opened one hidden part of a card: what approving a card of high risk waits for."""

    task = models.ForeignKey("ReviewTask", on_delete=models.PROTECT, related_name="expansions")
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    part = models.CharField(max_length=16, help_text="Names the part: a hash of its pointer.")
    pointer = models.TextField(help_text="Where it is in the arguments, as a person can read it.")
    via = models.CharField(max_length=5, choices=[("web", "web"), ("api", "api")])
    opened_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["task", "person", "digest", "part"], name="expansion_once"),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="expansion_is_final", operation=APPEND_ONLY),
            _never_emptied("expansions_are_never_emptied"),
        ]

    def __str__(self) -> str:
        return f"{self.person_id} opened {self.pointer} of {self.task_id}"
