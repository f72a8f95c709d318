"""Which values are not for every eye: what the schema or a name says is a password, a token or a key.

Such a value is masked until its reader asks for it. The mask is a matter of display alone: digest, answer
and what the tool gets are the true value.
Does not live here: the mask itself (``rows``, ``controls``, ``masking``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from reviewer.cards.values import Json

MASK: Final = "••••••••"

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAMES: Final = frozenset(
    {
        "apikey",
        "authorization",
        "credential",
        "credentials",
        "cvc",
        "cvv",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "token",
    }
)
_KEYS: Final = frozenset({"access", "api", "encryption", "private", "secret", "signing"})
_PLACES: Final = frozenset({"continuation", "cursor", "next", "page"})
"""A ``page_token`` says where to read on; it opens nothing."""


def is_secret(key: Json, schema: Json) -> bool:
    """Say whether the value under this key is to be masked."""
    return is_write_only(schema) or (isinstance(key, str) and is_secret_name(key))


def is_write_only(schema: Json) -> bool:
    """Say whether a schema itself says that its value is not for showing."""
    return isinstance(schema, dict) and (
        schema.get("writeOnly") is True or schema.get("format") == "password"
    )


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Say whether a name is a secret's: ``api_key``, ``accessToken``, ``PASSWORD``; not ``max_tokens``."""
    words = [word.lower() for word in _WORD.findall(name[:200])]
    if not words:
        return False
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "token":
        return before not in _PLACES
    return words[-1] in _NAMES or (words[-1] == "key" and before in _KEYS)


def is_masked(value: Json) -> bool:
    """Say whether a secret value has anything to hide: a text or a number, not an empty text or a yes."""
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def masked(value: Json, *, inside: bool = False) -> Json:
    """Return a copy with the values under secret names masked; ``inside`` says that all of it is secret."""
    if isinstance(value, dict):
        return {key: masked(item, inside=inside or is_secret_name(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item, inside=inside) for item in value]
    return MASK if inside and is_masked(value) else value


def secret_names(value: Json) -> Iterator[str]:
    """Yield the secret names of a value with something to hide under them."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from (key for key, inner in item.items() if is_secret_name(key) and _holds(inner))
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _holds(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_holds, value.values()))
    return any(map(_holds, value)) if isinstance(value, list) else is_masked(value)
