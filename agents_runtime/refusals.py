"""Where an agent's type check says an answer is wrong: Pydantic's path -> a pointer into the answer."""

from __future__ import annotations

from collections.abc import Sequence

from agents_runtime.canonical import Json


def pointer(path: Sequence[int | str], answer: Json, *, is_missing: bool = False) -> str:
    """Return the JSON pointer of ``path`` in ``answer``.

    Pydantic's paths also name branches of unions and wrappers; only steps that exist in the answer count,
    and the last one where it names what is missing.
    """
    steps: list[str] = []
    here = answer
    for place, step in enumerate(path):
        if isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        elif isinstance(here, dict) and str(step) in here:
            here = here[str(step)]
        elif not (is_missing and isinstance(here, dict) and place == len(path) - 1):
            continue
        steps.append(str(step).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{step}" for step in steps)
