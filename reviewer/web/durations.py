"""How long something took, in words."""

from __future__ import annotations

import datetime as dt

from django.utils.translation import gettext as _

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def duration_words(took: dt.timedelta | None) -> str:
    """Return "0 s", "0.8 s", "48 s", "3 min 2 s", "2 h 5 min" or "3 d 4 h"; nothing for nothing."""
    if took is None:
        return ""
    seconds = max(0.0, took.total_seconds())
    if seconds < 0.05:
        return _("%(n)s s") % {"n": 0}
    if seconds < 10:
        return _("%(n)s s") % {"n": f"{seconds:.1f}"}
    whole = round(seconds)
    if whole < MINUTE:
        return _("%(n)s s") % {"n": whole}
    if whole < HOUR:
        return _("%(n)s min %(rest)s s") % {"n": whole // MINUTE, "rest": whole % MINUTE}
    if whole < DAY:
        return _("%(n)s h %(rest)s min") % {"n": whole // HOUR, "rest": whole % HOUR // MINUTE}
    return _("%(n)s d %(rest)s h") % {"n": whole // DAY, "rest": whole % DAY // HOUR}
