"""The one canonical encoder: any Python value <-> JSON text that never changes under us.

Lives here: encoding, decoding and digests of values that agents produce and people answer.
Does not live here: what an interrupt means (``payloads``) or how a value is shown (``reviewer.cards``).

Rules: keys sorted; integers exact; floats in their shortest form, so that ``1`` and ``1.0`` differ;
non-ASCII escaped, so that lone surrogates survive; whatever JSON cannot hold is tagged as
``{"~type": name, ...}``. A plain mapping that itself has the key ``~type`` is tagged too, so that no
agent can forge a tag. The text is stored as text and never re-made from a ``jsonb`` column, which
would reorder keys and round numbers.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import enum
import hashlib
import json
import math
import uuid
from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any

Json = Any
"""A value as ``json.loads`` gives it: dict, list, str, int, float, bool or None."""

TAG = "~type"
MAX_DEPTH = 64
MAX_REPR = 4_000
_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
ALREADY_PLAIN = frozenset({str, int, bool, type(None)})
ONLY_TEXTS = frozenset({str})


@dataclasses.dataclass(frozen=True)
class Plain:
    """A value that is plain JSON data already, its tags included: it is taken as it stands."""

    value: Json


def encode(value: object) -> str:
    """Return the canonical JSON text of ``value``; never raises for any value."""
    return _dump(to_json(value))


def encode_in_order(value: object) -> str:
    """Return the same text with keys in the order they came: for showing, never for a digest."""
    return json.dumps(to_json(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def decode(text: str) -> Json:
    """Return the JSON value of a canonical text; tags of other values stay visible as mappings."""
    return _untagging.decode(text) if TAG in text else json.loads(text)


def digest(value: object) -> str:
    """Return the SHA-256 (64 lower hex digits) of the canonical text of ``value``."""
    return hashlib.sha256(encode(value).encode("ascii")).hexdigest()


def same(left: object, right: object) -> bool:
    """Say whether two values are the same to the byte: ``1``, ``1.0`` and ``True`` are three values."""
    return encode(left) == encode(right)


def storable(text: str) -> str:
    """Return ``text`` as a text column can hold it: NUL and lone surrogates written out as escapes."""
    return text.replace("\x00", "\\u0000").encode("utf-8", "backslashreplace").decode("utf-8")


def has_lone_surrogates(value: object) -> bool:
    """Say whether a text within ``value`` holds half a character, which UTF-8 cannot tell."""
    try:
        json.dumps(to_json(value), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def to_json(value: object) -> Json:
    """Return ``value`` as plain JSON data, tagging whatever JSON cannot hold."""
    return _plain(value, 0)


def _dump(value: Json) -> str:
    return _encoder.encode(value)


def _plain(value: Any, depth: int) -> Json:
    if depth > MAX_DEPTH:
        return _tagged("too-deep", value=_short_repr(value))
    if type(value) in ALREADY_PLAIN:  # most values are; the checks below are for those of other kinds
        return value
    if type(value) is dict:  # as below, and found sooner
        return _plain_mapping(value, depth)
    if isinstance(value, Plain):
        return value.value
    if isinstance(value, enum.Enum):
        return _tagged("enum", name=_class_name(value), value=_plain(value.value, depth + 1))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _tagged("float", value=repr(float(value)))
    if isinstance(value, Mapping):
        return _plain_mapping(value, depth)
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return _plain_object(value, depth)


def _plain_mapping(value: Mapping[Any, Any], depth: int) -> Json:
    has_names = ONLY_TEXTS.issuperset(map(type, value)) or all(isinstance(key, str) for key in value)
    if has_names and TAG not in value:
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    pairs = [[_plain(key, depth + 1), _plain(item, depth + 1)] for key, item in value.items()]
    return _tagged("mapping", items=sorted(pairs, key=lambda pair: _dump(pair[0])))


def _plain_object(value: Any, depth: int) -> Json:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _tagged("bytes", base64=base64.b64encode(bytes(value)).decode("ascii"))
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return _tagged(type(value).__name__, value=value.isoformat())
    if isinstance(value, dt.timedelta):
        return _tagged(
            "timedelta", seconds=value.days * 86_400 + value.seconds, microseconds=value.microseconds
        )
    if isinstance(value, (Decimal, uuid.UUID, PurePath)):
        return _tagged(type(value).__name__, value=str(value))
    if isinstance(value, (set, frozenset)):
        return _tagged("set", items=sorted((_plain(item, depth + 1) for item in value), key=_dump))
    fields = _fields(value)
    if fields is None:
        return _tagged("object", name=_class_name(value), value=_short_repr(value))
    return _tagged("object", name=_class_name(value), fields=_plain(fields, depth + 1))


def _fields(value: Any) -> dict[str, Any] | None:
    """Return the fields of a dataclass or Pydantic object, or None for any other object."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    model_fields = getattr(type(value), "model_fields", None)
    if isinstance(model_fields, Mapping):
        return {name: getattr(value, name, None) for name in model_fields}
    return None


def _tagged(tag: str, **fields: Json) -> Json:
    return {TAG: tag, **fields}


def _untag_mapping(found: dict[str, Json]) -> Json:
    if found.get(TAG) != "mapping" or not isinstance(found.get("items"), list):
        return found
    pairs = found["items"]
    if all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        return dict(pairs)
    return found


_untagging = json.JSONDecoder(object_hook=_untag_mapping)


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _short_repr(value: object) -> str:
    try:
        return repr(value)[:MAX_REPR]
    except Exception as problem:  # noqa: BLE001  (an agent's own __repr__ may raise anything)
        return f"<{_class_name(value)}: its description raised {type(problem).__name__}>"
