"""What the garbage collector of a long-lived process need not look at."""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 10_000


def keep_what_is_loaded() -> None:
    """Let the collector leave alone what start-up loaded, and come less often.

    Half a million objects of libraries live as long as the process: looking through them took a fifth of a
    second in the middle of somebody's request, and pages that a collection touches are no longer shared
    between a worker and its children.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
