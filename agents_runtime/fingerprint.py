"""One short value that says whether a run can go on with this build of its agent.

Lives here: what goes into it. Nodes, channels and breakpoints (those of subgraphs too), tool arguments, gates
with their mode, and the libraries do: a change of these can lose a pause or drop a gate. Wording and hints do
not: an author may mend a description while runs wait.
Not seen: the code behind a node, and the code of a gate's condition.
"""

from __future__ import annotations

import dataclasses
from importlib.metadata import version

from agents_runtime.anatomy import Anatomy
from agents_runtime.canonical import Json, digest, encode

LIBRARIES = ("langchain", "langchain-core", "langgraph", "langgraph-checkpoint", "langgraph-prebuilt")
WORDING = frozenset({"description", "title", "examples"})
# Under these keys of a schema stand names that the author chose, not keywords.
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def fingerprint(anatomy: Anatomy) -> str:
    """Return 64 hex digits: the same in every process for the same build."""
    return digest(
        {
            "shapes": [dataclasses.astuple(shape) for shape in (anatomy.shape, *anatomy.inner)],
            "tools": {name: without_wording(face.args_schema) for name, face in anatomy.tools.items()},
            "gates": sorted(
                encode([mode, {name: gate.guard() for name, gate in gates.items()}])
                for mode, gates in anatomy.gatekeepers
            ),
            "libraries": {name: version(name) for name in LIBRARIES},
        }
    )


def without_wording(schema: Json) -> Json:
    """Return a JSON Schema without its titles, descriptions and examples."""
    if isinstance(schema, list):
        return [without_wording(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _kept(key, value) for key, value in schema.items() if key not in WORDING}


def _kept(key: str, value: Json) -> Json:
    if key in {"enum", "const", "default"}:
        return value
    if key in NAMED and isinstance(value, dict):
        return {name: without_wording(item) for name, item in value.items()}
    return without_wording(value)
