"""The title of a card, from the author's template or from tool and arguments; never from the model.

Does not live here: titles of fields, which come from their schema (``compile``).
"""

from __future__ import annotations

import re
from typing import Final

from reviewer.cards import unicode
from reviewer.cards.secrets import MASK, is_masked, is_secret_name
from reviewer.cards.values import MISSING, Json

LONGEST: Final = 120
_LONGEST_VALUE: Final = 40
_MOST_ARGUMENTS: Final = 2
_FIELD: Final = re.compile(r"\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}")
_NAME: Final = re.compile(r"[\w.-]+")
_ACRONYMS: Final = frozenset({"api", "bic", "csv", "html", "iban", "ip", "json", "pdf", "sql", "url", "vat"})
_TELLING: Final = (
    "title",
    "name",
    "subject",
    "to",
    "recipient",
    "path",
    "file",
    "id",
    "url",
    "query",
    "question",
    "command",
)


def title(template: str | None, tool: str, args: Json) -> str:
    """Return one line of at most 120 characters with hidden characters written out.

    A template such as ``Refund {amount} {currency} for order {order_id}`` is filled from the arguments
    (dotted paths go into
    objects and lists). A field that is missing or not a scalar makes the template unfit: then tool and
    arguments speak.
    """
    filled = _fill(template, args) if template else None
    return _line(filled or "") or _line(_from_arguments(tool, args))


def humanise(key: str) -> str:
    """Return ``order_id`` and ``orderId`` as ``Order id``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_\-.\s]+", " ", key)).strip()
    if not spaced:
        return key
    words = [_word(word) for word in spaced.split(" ")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def _word(word: str) -> str:
    if word.isupper() and len(word) > 1:
        return word
    return word.upper() if word.lower() in _ACRONYMS else word.lower()


def _fill(template: str, args: Json) -> str | None:
    values = {match[1]: _scalar(_shown_at(args, match[1])) for match in _FIELD.finditer(template)}
    if None in values.values():
        return None
    return _FIELD.sub(lambda match: values[match[1]] or "", template)


def _shown_at(args: Json, dotted: str) -> Json:
    """Return what a title shows of a field; lists of tasks and the trail hold it, so never a secret."""
    value = _at(args, dotted)
    is_covered = is_masked(value) and any(map(is_secret_name, dotted.split(".")))
    return MASK if is_covered else value


def _at(args: Json, dotted: str) -> Json:
    found = args
    for part in dotted.split("."):
        if isinstance(found, dict):
            found = found.get(part, MISSING)
        elif isinstance(found, list) and part.isascii() and part.isdigit() and int(part[:6]) < len(found):
            found = found[int(part[:6])]
        else:
            return MISSING
    return found


def _scalar(value: Json) -> str | None:
    if isinstance(value, bool) or value is None or value is MISSING:
        return None
    if isinstance(value, list):
        if len(value) == 1:
            return _scalar(value[0])
        return None
    if isinstance(value, dict):
        return None
    text = " ".join(value.split()) if isinstance(value, str) else repr(value)
    if not text:
        return None
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _from_arguments(tool: str, args: Json) -> str:
    if not tool.strip():
        return _question(args)
    told = (
        []
        if not isinstance(args, dict)
        else [
            text
            for key in _telling_first(args)
            if not is_secret_name(key) and args[key] != MASK and (text := _scalar(args[key]))
        ]
    )
    name = humanise(tool) if _NAME.fullmatch(tool) else tool  # what is words already stays as it is
    return ": ".join([name, ", ".join(told[:_MOST_ARGUMENTS])]) if told else name


def _telling_first(args: dict[str, Json]) -> list[str]:
    telling = [key for key in args if key.lower() in _TELLING or key.lower().endswith(("_id", "_name"))]
    return [*telling, *(key for key in args if key not in telling)]


def _question(value: Json) -> str:
    if isinstance(value, dict):
        value = next(
            (
                value[key]
                for key in ("question", "title", "message", "prompt")
                if isinstance(value.get(key), str)
            ),
            "",
        )
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text or "Answer needed"


def _line(text: str) -> str:
    shown = unicode.visible(" ".join(text.split()))
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1].rstrip() + "…"
