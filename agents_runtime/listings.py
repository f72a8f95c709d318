"""Reading langgraph.json files: which agents they list, and what they say of each.

Lives here: the files, their entries, and what is wrong with them in plain words.
Does not live here: importing an agent (``loading``) or writing rows (``registry``).

Read from such a file: ``graphs`` (name -> ``./file.py:attr``, ``pkg.mod:attr`` or an object with ``path`` and
``description``), ``dependencies`` (local folders only) and our own optional key::

    "countersign": {"<agent>": {"title": ..., "description": ..., "example_input": {...},
                                "gates": ["tool"] | {"tool": {"decisions": [...], "conditional": false,
                                                              "risk": ..., "queue": ..., "expires_after": ...,
                                                              "on_expiry": ...}}}}

``env`` is not read: such variables belong to the worker's environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_runtime.canonical import Json

SHIPPED = Path(__file__).parent / "agents" / "langgraph.json"
FILE_NAME = "langgraph.json"
DECISIONS = ("approve", "edit", "reject", "respond")
RISKS = ("low", "medium", "high", "critical")
ON_EXPIRY = ("hold", "reject")
# A name is part of addresses and of policies.
NAME = re.compile(r"\w[\w.-]{0,99}")
SLUG = re.compile(r"[-\w]{1,60}", re.ASCII)
MAX_EXPIRY = 366 * 24 * 3600
MAX_STEP = 24 * 3600
MAX_PATH = 500
MAX_TITLE = 200


@dataclass(frozen=True)
class Hints:
    """What an agent's author says of the requests of one tool; a policy of the organisation goes first.

    ``risk``: low | medium | high | critical. ``queue``: the slug of a queue. ``expires_after``: seconds until
    a request that nobody decided expires; ``on_expiry``: hold | reject. A timeout never approves. Empty: not
    said.
    """

    risk: str = ""
    queue: str = ""
    expires_after: int | None = None
    on_expiry: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return what is said, for the gate record."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Gate:
    """What is known of the gate before one tool.

    ``decisions`` is empty where only the file names the gate and does not say which are allowed.
    ``is_conditional``: a condition in the agent's code may let a call through without asking.
    """

    decisions: tuple[str, ...] = ()
    is_conditional: bool = False
    hints: Hints = Hints()

    def to_json(self) -> Json:
        """Return the form that ``AgentSpec.gates`` and ``Run.gates`` hold: hints stand beside the rest."""
        return {**self.guard(), **self.hints.to_json()}

    def guard(self) -> dict[str, Json]:
        """Return what decides whether a call may run; hints only decide who is asked, and for how long."""
        return {"decisions": list(self.decisions), "conditional": self.is_conditional}


@dataclass(frozen=True)
class Trouble:
    """Something that could not be registered: the file, the entry ("" for the whole file), and why."""

    source: str
    entry: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.entry, self.message) if part)


@dataclass(frozen=True)
class Entry:
    """One agent as a file lists it; ``target`` is ``./file.py:attr`` or ``pkg.mod:attr``."""

    name: str
    source: Path
    target: str
    folders: tuple[Path, ...]
    title: str = ""
    description: str = ""
    example_input: Json = None
    gates: Mapping[str, Gate] = field(default_factory=dict)
    step_seconds: int | None = None
    has_env: bool = False

    @property
    def label(self) -> str:
        """Name and target, for messages."""
        return f"{self.name} ({self.target})"


@dataclass(frozen=True)
class Listing:
    """Everything that some files list, and everything wrong with them."""

    entries: tuple[Entry, ...] = ()
    troubles: tuple[Trouble, ...] = ()


class _Refused(Exception):
    """Why a file or an entry cannot be used."""


def read_all(paths: Iterable[str | Path]) -> Listing:
    """Read the files (or folders that hold a langgraph.json); the first of two equal names is kept."""
    entries: dict[str, Entry] = {}
    troubles: list[Trouble] = []
    for source in dict.fromkeys(_file(path) for path in paths):
        listing = read(source)
        troubles.extend(listing.troubles)
        for entry in listing.entries:
            first = entries.setdefault(entry.name, entry)
            if first is not entry:
                message = f"The name {entry.name} is already used by {first.source}. Rename one of them."
                troubles.append(Trouble(str(source), entry.label, message))
    return Listing(tuple(entries.values()), tuple(troubles))


def read(source: Path) -> Listing:
    """Read one file; whatever is wrong with one entry leaves the others alone."""
    try:
        content = _content(source)
    except _Refused as problem:
        return Listing(troubles=(Trouble(str(source), "", str(problem)),))
    entries: list[Entry] = []
    troubles: list[Trouble] = []
    for name, raw in content["graphs"].items():
        try:
            entries.append(_entry(source, content, name, raw))
        except _Refused as problem:
            troubles.append(Trouble(str(source), name, str(problem)))
    troubles.extend(_unknown_notes(source, content))
    return Listing(tuple(entries), tuple(troubles))


def _file(path: str | Path) -> Path:
    found = Path(path).expanduser().absolute()
    return (found / FILE_NAME if found.is_dir() else found).resolve()


def _content(source: Path) -> dict[str, Json]:
    try:
        content = json.loads(source.read_bytes(), object_pairs_hook=_no_key_twice)
    except (FileNotFoundError, NotADirectoryError):
        raise _Refused("There is no such file.") from None
    except OSError as problem:
        raise _Refused(f"The file cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError) as problem:  # not JSON, or not UTF-8
        raise _Refused(f"This is not valid JSON: {problem}.") from None
    if not isinstance(content, dict) or not isinstance(content.get("graphs"), dict):
        raise _Refused('There is no "graphs" object in it.')
    if not content["graphs"]:
        raise _Refused('Its "graphs" object lists no agent.')
    return content


def _no_key_twice(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{', '.join(twice)} is given twice in one object")
    return found


def _entry(source: Path, content: dict[str, Json], name: str, raw: Json) -> Entry:
    if not NAME.fullmatch(name):
        raise _Refused("A name has at most 100 letters, digits, underscores, hyphens and dots.")
    target, description = _target(raw)
    notes = _notes(content, name)
    return Entry(
        name=name,
        source=source,
        target=target,
        folders=_folders(source, content),
        title=_text(notes, "title")[:MAX_TITLE],
        description=_text(notes, "description") or description,
        example_input=notes.get("example_input"),
        gates=_gates(notes.get("gates", [])),
        step_seconds=_step_seconds(notes.get("step_seconds")),
        has_env=bool(content.get("env")),
    )


def _target(raw: Json) -> tuple[str, str]:
    """Return target and description of an entry in either of its forms."""
    given = raw if isinstance(raw, dict) else {"path": raw}
    target, description = given.get("path"), given.get("description") or ""
    if not isinstance(target, str) or not all(target.rpartition(":")) or len(target) > MAX_PATH:
        raise _Refused('An entry reads "./file.py:attribute" or "package.module:attribute".')
    return target, str(description)


def _folders(source: Path, content: dict[str, Json]) -> tuple[Path, ...]:
    """Return the folders from which the agents of a file import their own modules."""
    listed = content.get("dependencies")
    local = [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []
    roots = [source.parent, *(source.parent / item for item in local if item.startswith("."))]
    both = [folder.resolve() for root in roots for folder in (root, root / "src")]
    return tuple(dict.fromkeys(folder for folder in both if folder.is_dir()))


def _notes(content: dict[str, Json], name: str) -> dict[str, Json]:
    ours = content.get("countersign", {})
    if not isinstance(ours, dict):
        raise _Refused('"countersign" must be an object with one object for each agent.')
    notes = ours.get(name, {})
    if not isinstance(notes, dict):
        raise _Refused(f'"countersign" must hold an object for {name}.')
    return notes


def _unknown_notes(source: Path, content: dict[str, Json]) -> list[Trouble]:
    """Tell of notes on agents that the file does not list: a gate there would silently not exist."""
    ours = content.get("countersign", {})
    names = sorted(set(ours) - set(content["graphs"])) if isinstance(ours, dict) else []
    return [Trouble(str(source), name, 'It is in "countersign" but not in "graphs".') for name in names]


def _text(notes: dict[str, Json], key: str) -> str:
    found = notes.get(key, "")
    if not isinstance(found, str):
        raise _Refused(f'"{key}" in "countersign" must be text.')
    return found


def _step_seconds(raw: Json) -> int | None:
    if raw is not None and (type(raw) is not int or not 0 < raw <= MAX_STEP):
        raise _Refused('"step_seconds" is a whole number of seconds, at most a day.')
    return raw


def _gates(raw: Json) -> dict[str, Gate]:
    if isinstance(raw, list):
        raw = {tool: {} for tool in raw} if _all_text(raw) else None
    if not isinstance(raw, dict):
        raise _Refused('"gates" must be a list of tool names, or an object with one object for each tool.')
    return {tool: _gate(tool, given) for tool, given in raw.items()}


def _gate(tool: str, given: Json) -> Gate:
    if not isinstance(given, dict):
        raise _Refused(f'"gates" must hold an object for {tool}.')
    decisions = given.get("decisions", [])
    if not isinstance(decisions, list) or any(decision not in DECISIONS for decision in decisions):
        raise _Refused(f"The decisions for {tool} are a list of {', '.join(DECISIONS)}.")
    return Gate(tuple(decisions), given.get("conditional") is True, _hints(tool, given))


def _hints(tool: str, given: dict[str, Json]) -> Hints:
    found = Hints(
        risk=given.get("risk", ""),
        queue=given.get("queue", ""),
        expires_after=given.get("expires_after"),
        on_expiry=given.get("on_expiry", ""),
    )
    if problem := problem_with(found):
        raise _Refused(f"{tool}: {problem}")
    return found


def problem_with(hints: Hints) -> str:
    """Say in words what is wrong with hints, or "" if nothing is."""
    if hints.risk and hints.risk not in RISKS:
        return f"its risk is one of {', '.join(RISKS)}, not {hints.risk!r}."
    if not isinstance(hints.queue, str) or (hints.queue and not SLUG.fullmatch(hints.queue)):
        return f"its queue is a queue's short name such as payments, not {hints.queue!r}."
    if hints.on_expiry and hints.on_expiry not in ON_EXPIRY:
        return f"on expiry a request is one of {', '.join(ON_EXPIRY)}: a timeout never approves."
    seconds = hints.expires_after
    if seconds is not None and (type(seconds) is not int or not 0 < seconds <= MAX_EXPIRY):
        return f"it expires after a whole number of seconds, at most a year, not {seconds!r}."
    if hints.on_expiry and seconds is None:
        return "it says what happens on expiry, but not when it expires."
    return ""


def _all_text(items: list[Json]) -> bool:
    return all(isinstance(item, str) for item in items)
