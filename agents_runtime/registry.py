"""The agents of this installation: langgraph.json files -> ``AgentSpec`` rows, and rows -> graphs.

Lives here: registering, and the one door through which a worker gets a graph. Runs only in workers and in
their command ``register_agents``: both import agents' code, which the web never does.
Does not live here: reading the files (``listings``), importing (``loading``), looking inside (``anatomy``).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jsonschema_rs
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from langgraph.graph import StateGraph

from agents_runtime.anatomy import Anatomy, examine
from agents_runtime.canonical import Json, decode, encode, encode_in_order, storable
from agents_runtime.errors import AgentUnavailable
from agents_runtime.fingerprint import fingerprint
from agents_runtime.input_schemas import for_people
from agents_runtime.listings import MAX_TITLE, SHIPPED, Entry, Gate, Hints, Trouble, read_all
from agents_runtime.loading import MAX_MESSAGE, Graph, load
from agents_runtime.models import AgentSpec, RegistrationProblem
from agents_runtime.typed_inputs import input_schema
from agents_runtime.wiring import flaws, gaps

# Any number that no one else takes: two workers that start together register one after the other.
REGISTRATION_LOCK = 0x436F_756E_7465_7273
OTHER_GATES = (
    "{name}: its code gates other calls than it did when registered. Run register_agents, restart workers."
)

_graphs: dict[tuple[str, str, str], tuple[Graph, Anatomy, tuple[str, ...]]] = {}
_graphs_lock = threading.Lock()


@dataclass(frozen=True)
class Report:
    """What came of a registration; names of agents, in order."""

    registered: tuple[str, ...]
    broken: tuple[str, ...]
    unlisted: tuple[str, ...]
    troubles: tuple[Trouble, ...]


@dataclass(frozen=True)
class _Found:
    """One entry with what is known of it; ``fields`` are those of ``AgentSpec``."""

    entry: Entry
    fields: Mapping[str, Any]
    troubles: tuple[Trouble, ...] = ()


def register() -> Report:
    """Read every listed file, import every agent, and write what is found; one bad agent harms no other."""
    listing = read_all([SHIPPED, *settings.COUNTERSIGN_AGENTS])
    found = [_look(entry) for entry in listing.entries]
    troubles = (*listing.troubles, *(trouble for one in found for trouble in one.troubles))
    with transaction.atomic():
        _wait_for_turn()
        unlisted = _unlist(keep=[one.entry.name for one in found])
        for one in found:
            AgentSpec.objects.update_or_create(
                name=one.entry.name, defaults={**one.fields, "is_listed": True, "registered_at": Now()}
            )
        _replace_problems(troubles)
    return Report(
        registered=tuple(sorted(one.entry.name for one in found if not one.fields["import_error"])),
        broken=tuple(sorted(one.entry.name for one in found if one.fields["import_error"])),
        unlisted=unlisted,
        troubles=troubles,
    )


def load_graph(spec: AgentSpec) -> Graph:
    """Return the graph of an agent as its author wrote it, made once per process.

    Raises ``AgentUnavailable`` if it cannot be had, if its middleware undoes its gates, or if its code gates
    other calls than the row says: then what people were promised at a run's start is not what would happen.
    """
    key = _key(spec)
    if key not in _graphs:  # whoever needs one that is there waits for no import of another
        with _graphs_lock:
            if key not in _graphs:
                graph = _load_listed(spec)
                _graphs[key] = graph, examine(graph), flaws(graph)
    graph, anatomy, wrong = _graphs[key]
    if wrong:
        raise AgentUnavailable(f"{spec.name}: {' '.join(wrong)}")
    _refuse_other_gates(spec, anatomy)
    return graph


def graph_fingerprint(graph: Graph) -> str:
    """Return the fingerprint of the build that this process has; the spec holds the registered one."""
    return fingerprint(examine(graph))


def _key(spec: AgentSpec) -> tuple[str, str, str]:
    return spec.source, spec.name, spec.entry


def _load_listed(spec: AgentSpec) -> Graph:
    listing = read_all([spec.source])
    for entry in listing.entries:
        if (entry.name, entry.target) == (spec.name, spec.entry):
            return load(entry)
    trouble = next(iter(listing.troubles), None)
    reason = trouble.message if trouble else "It is no longer listed there."
    raise AgentUnavailable(f"{spec.name} ({spec.entry}) cannot be loaded from {spec.source}: {reason}")


def _refuse_other_gates(spec: AgentSpec, anatomy: Anatomy) -> None:
    promised: dict[str, Json] = decode(spec.gates)
    if any(_guard_of(promised.get(tool)) != gate.guard() for tool, gate in anatomy.gates.items()):
        raise AgentUnavailable(OTHER_GATES.format(name=spec.name))


def _guard_of(recorded: Json) -> Json:
    return recorded and {key: recorded.get(key) for key in Gate().guard()}


def _look(entry: Entry) -> _Found:
    where = {"source": storable(str(entry.source)), "entry": storable(entry.target)}
    try:
        graph = load(entry)
        if wrong := flaws(graph):
            raise AgentUnavailable(" ".join(wrong))
    except AgentUnavailable as problem:
        message = storable(str(problem))
        return _Found(entry, {**where, "import_error": message}, (_trouble(entry, message),))
    schema, troubles = _input_schema(entry, graph)
    anatomy = examine(graph)
    fields = {
        **where,
        "title": storable(entry.title or entry.name.replace("_", " ").replace("-", " ").capitalize())[
            :MAX_TITLE
        ],
        "description": storable(entry.description),
        "step_seconds": entry.step_seconds,
        "input_schema": encode_in_order(schema),
        "example_input": "" if entry.example_input is None else encode_in_order(entry.example_input),
        "import_error": "",
        **_inside(entry, anatomy),
    }
    missing = (_trouble(entry, gap) for gap in gaps(graph, anatomy.gates))
    return _Found(entry, fields, (*troubles, *_misfits(entry, schema), *missing))


def _inside(entry: Entry, anatomy: Anatomy) -> dict[str, Any]:
    gates = _gates(entry, anatomy)
    tools = {
        name: {
            "description": face.description,
            "args_schema": face.args_schema,
            "title": face.title,
            "gated": name in gates,
        }
        for name, face in anatomy.tools.items()
    }
    return {
        "tools": encode_in_order(tools),
        "gates": encode({name: gate.to_json() for name, gate in gates.items()}),
        "mode": AgentSpec.Mode.PER_CALL if gates and anatomy.mode == "none" else anatomy.mode,
        "is_async": anatomy.is_async,
        "fingerprint": fingerprint(anatomy),
    }


def _gates(entry: Entry, anatomy: Anatomy) -> dict[str, Gate]:
    """Return the gates that code or file name; what the agent's own code says of a gate goes first."""
    both = {**entry.gates, **anatomy.gates}
    return {tool: _with_hints(gate, entry.gates.get(tool)) for tool, gate in both.items()}


def _with_hints(gate: Gate, in_file: Gate | None) -> Gate:
    """Take the file's hints where the code gives none."""
    return gate if in_file is None or gate.hints != Hints() else replace(gate, hints=in_file.hints)


def _input_schema(entry: Entry, graph: Graph) -> tuple[Json, tuple[Trouble, ...]]:
    builder = getattr(graph, "builder", None)
    is_whole_state = isinstance(builder, StateGraph) and builder.input_schema is builder.state_schema
    whole, formless = input_schema(graph)
    schema = for_people(whole, is_whole_state=is_whole_state)
    try:
        jsonschema_rs.Draft202012Validator(schema, offline=True)
    except ValueError as problem:  # the engine's own errors are ValueErrors
        words = " ".join(str(problem).split())[:MAX_MESSAGE]
        return {}, (_trouble(entry, f"Its input schema is not valid, so any JSON is taken: {words}"),)
    if not formless:
        return schema, ()
    message = f"Part of its input has no JSON form, so any JSON is taken there: {', '.join(formless)}."
    return schema, (_trouble(entry, message),)


def _misfits(entry: Entry, schema: Json) -> tuple[Trouble, ...]:
    """Tell if the example in the file is no valid input."""
    if entry.example_input is None:
        return ()
    validator = jsonschema_rs.Draft202012Validator(schema, offline=True)
    problem = next(validator.iter_errors(entry.example_input), None)
    if problem is None:
        return ()
    return (_trouble(entry, f"Its example input does not fit: {problem.message}."),)


def _trouble(entry: Entry, message: str) -> Trouble:
    return Trouble(str(entry.source), entry.label, message)


def _wait_for_turn() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [REGISTRATION_LOCK])


def _unlist(*, keep: list[str]) -> tuple[str, ...]:
    gone = AgentSpec.objects.filter(is_listed=True).exclude(name__in=keep)
    names = tuple(gone.order_by("name").values_list("name", flat=True))
    gone.update(is_listed=False)
    return names


def _replace_problems(troubles: tuple[Trouble, ...]) -> None:
    RegistrationProblem.objects.all().delete()
    RegistrationProblem.objects.bulk_create(
        RegistrationProblem(
            source=storable(trouble.source)[:500],
            entry=storable(trouble.entry)[:500],
            message=storable(trouble.message),
        )
        for trouble in troubles
    )
