"""People and the tokens of their programs. What a person may do lives in ``permissions``."""

from __future__ import annotations

import hashlib
import secrets
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What a person is here for; queue membership decides the rest."""

    REVIEWER = "reviewer", _("Reviewer")
    LEAD = "lead", _("Team lead")
    ADMIN = "admin", _("Administrator")
    AUDITOR = "auditor", _("Auditor")
    DEVELOPER = "developer", _("Developer")


class User(AbstractUser):
    """A person who signs in."""

    role = models.CharField(max_length=10, choices=Role, default=Role.REVIEWER)
    session_epoch = models.PositiveIntegerField(
        default=0, help_text="Raised to close this person's open sockets at once."
    )

    class Meta:
        ordering: ClassVar = ["username"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(role__in=Role.values), name="user_role_is_known"),
        ]

    @property
    def display_name(self) -> str:
        """The name as people read it: "Ines H.", or the account's name where no other is known."""
        if not self.first_name:
            return self.username
        return f"{self.first_name} {self.last_name[:1]}." if self.last_name else self.first_name

    @property
    def initials(self) -> str:
        """Two letters for the avatar."""
        letters = (self.first_name[:1] + self.last_name[:1]) or self.username[:2]
        return letters.upper()

    @property
    def reference(self) -> str:
        """The opaque form under which the agents' side stores this person."""
        return f"user:{self.pk}"


class ApiToken(models.Model):
    """A person's key for programs; only its hash is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=12)
    secret_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"

    @classmethod
    def issue(cls, user: User, *, name: str = "") -> tuple[ApiToken, str]:
        """Store a new token and return it with its secret, which is never seen again."""
        secret = f"cs_{secrets.token_urlsafe(32)}"
        token = cls.objects.create(user=user, name=name, prefix=secret[:9], secret_hash=hash_secret(secret))
        return token, secret


def hash_secret(secret: str) -> str:
    """Return the stored form of a token's secret: it has 256 random bits, so one SHA-256 is enough."""
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()
