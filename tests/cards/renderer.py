"""Drawings by which a change of the card renderer is noticed, and what records them.

``make drawings`` calls ``record``: it draws the corpus, and where a drawing or a template behind it is
another than was recorded, it raises ``RENDERER_VERSION`` by one and writes the new record. Commit both files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.test.signals import template_rendered
from django.test.utils import override_settings, setup_test_environment
from django.utils import translation

from agents_runtime.canonical import encode, encode_in_order
from reviewer.cards.version import RENDERER_VERSION
from reviewer.models import ReviewTask
from reviewer.shown import inert_drawing
from tests.servers import PROJECT

RECORD = Path(__file__).with_name("renderer.json")
VERSION_FILE = PROJECT / "reviewer/cards/version.py"
TEMPLATES = PROJECT / "templates"
SAMPLES = Path(__file__).parent / "samples"
_PLAIN: dict[str, Any] = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}

LONG = "Dear customer, " + "we are sorry for this. " * 40 + "Pay to account 12."
MARKDOWN = """# All **checked**

- [x] `safe`

[ok](https://e.example) <b>x</b>

> quote

| a |
|-|
| 1 |
"""
PLAIN: dict[str, Any] = {
    "yes": True,
    "no": False,
    "none": None,
    "empty": "",
    "list": [],
    "map": {},
    "n": 2**53 + 1,
    "x": 30.0,
    "code": "ord-17/b",
    "words": "two words",
    "": "no key",
    " ": 1,
}
DECEPTIVE = {"a\u202eb": "pay\u200b 1\u0430pple", "n": "\ud800\u0007"}
KNOWN_SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["card_refund", "note"]},
        "when": {"type": "string", "format": "date"},
        "left_out": {"type": ["integer", "null"]},
        "password": {"type": "string", "format": "password"},
    },
    "required": ["kind"],
}
REFUSAL = [{"pointer": "/amount", "message": "too small"}, {"pointer": "", "message": "no"}]
CRAFTED: dict[str, dict[str, Any]] = {
    "long text": {"action": {"body": LONG, "to": ["a@example.org"]}},
    "huge text": {"action": {"body": LONG * 200}},
    "hidden characters": {"action": DECEPTIVE, "title": "a\u202eb"},
    "many items": {"action": {"ids": list(range(40)), "rows": [{"a": n, "b": None} for n in range(9)]}},
    "deep": {"action": {"a": {"b": {"c": {"d": {"e": [{"f": [[]]}]}}}}}},
    "plain values": {"action": PLAIN},
    "by schema": {"action": {"kind": "card_refund", "when": "2026-11-30"}, "args_schema": KNOWN_SCHEMA},
    "secrets": {"action": {"api_key": "sk-live-1234567890abcdef", "token": "abc", "user": "ann"}},
    "lists": {
        "action": {
            "words": ["a", "b"],
            "lines": [{"sku": "A-1", "n": 2}, {"sku": "B-2"}],
            "blocks": [{"sku": "A-1", "n": 2}, {"sku": "B-2", "n": "2"}],
        }
    },
    "misfits": {"action": {"kind": 1, "when": [], "left_out": "3"}, "args_schema": KNOWN_SCHEMA},
    "a draft": {"action": {"draft": MARKDOWN, "channel": "blog"}, "tool": ""},
    "agent's words": {"said": MARKDOWN},
    "much said": {"said": LONG * 40, "description": "Refunds a payment.\nOnce."},
    "refused": {"refusal": REFUSAL},
    "a question": {"action": "Which tax rule?", "tool": "", "risk": "low"},
    "critical": {"risk": "critical"},
}


@dataclass(frozen=True)
class Recorded:
    """What the corpus looks like: SHA-256 by name, of each drawing and of each template behind them."""

    version: int
    drawings: dict[str, str]
    templates: dict[str, str]


def recorded() -> Recorded:
    """Return what was recorded last."""
    return Recorded(**json.loads(RECORD.read_text()))


def drawn_now() -> Recorded:
    """Draw the corpus and return what it looks like now."""
    used: set[Path] = set()

    def note(template: Any, **_: Any) -> None:
        used.add(Path(template.origin.name))

    template_rendered.connect(note)
    try:
        with translation.override("en"), override_settings(STORAGES=_PLAIN):
            drawings = dict(_drawings())
    finally:
        template_rendered.disconnect(note)
    return Recorded(
        version=RENDERER_VERSION,
        drawings=drawings,
        templates={
            str(path.relative_to(TEMPLATES)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(used)
        },
    )


def differences(old: Recorded, new: Recorded) -> list[str]:
    """Return the names of what is drawn, or written in a template, otherwise than before."""
    pairs = ((old.drawings, new.drawings), (old.templates, new.templates))
    return [
        name
        for before, after in pairs
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def record() -> None:
    """Record the corpus as it looks now, under a new version if it looks different; outside of tests."""
    setup_test_environment()
    now = drawn_now()
    old = recorded() if RECORD.exists() else None
    version = now.version
    if old is not None and differences(old, now) and version == old.version:
        version += 1
        source = VERSION_FILE.read_text()
        VERSION_FILE.write_text(
            re.sub(r"(?m)^(RENDERER_VERSION: Final = )\d+$", rf"\g<1>{version}", source, count=1)
        )
    RECORD.write_text(json.dumps({**asdict(now), "version": version}, indent=1, sort_keys=True) + "\n")


def _drawings() -> Iterator[tuple[str, str]]:
    for path in sorted(SAMPLES.glob("*.json")):
        yield path.stem, inert_drawing(_task(**_fields(json.loads(path.read_text())))).sha256
    for name, fields in CRAFTED.items():
        yield name, inert_drawing(_task(**fields)).sha256


def _fields(sample: dict[str, Any]) -> dict[str, Any]:
    value: Any = sample.get("interrupt_value", sample.get("value"))
    is_call = isinstance(value, dict) and value.get("type") == "tool_approval"
    return {
        "tool": value["name"] if is_call else "",
        "action": value["args"] if is_call else value,
        "response_schema": sample["schema"] if "schema" in sample else sample["response_schema"],
    }


def _task(**fields: Any) -> ReviewTask:
    return ReviewTask(
        title=fields.get("title", "Refund 18.40"),
        agent="refunds",
        tool=fields.get("tool", "issue_refund"),
        risk=fields.get("risk", "high"),
        policy_label="refunds v1",
        digest="0" * 64,
        action=encode_in_order(fields.get("action", {"amount": "18.40"})),
        response_schema=encode_in_order(fields.get("response_schema", True)),
        args_schema=encode_in_order(fields.get("args_schema")),
        said=fields.get("said", ""),
        description=fields.get("description", ""),
        refusal=encode(fields.get("refusal", [])),
    )
