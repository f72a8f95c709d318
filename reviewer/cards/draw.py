"""Draws one template of ``templates/cards``; the only place of this room that knows where templates are."""

from __future__ import annotations

from typing import Any

from django.template.loader import get_template
from django.utils.safestring import SafeString


def draw(template: str, /, **context: Any) -> SafeString:
    """Return a template of this room filled in."""
    return SafeString(get_template(f"cards/{template}.html").render(context))
