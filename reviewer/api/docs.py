"""The API's own documentation: one page, made on the server from the OpenAPI description.

No script, no outside address, so it works under the strict content policy and in print.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

Schema = Mapping[str, Any]
MARKDOWN = MarkdownIt("commonmark", {"html": False})
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Field:
    """A field of a shape, or a parameter. ``type`` is what people read, ``shape`` what it links to."""

    name: str
    type: str
    shape: str
    is_required: bool
    note: SafeString


@dataclass(frozen=True)
class Answer:
    """A possible answer: its status, and the shape of its body."""

    status: str
    shape: str


@dataclass(frozen=True)
class Operation:
    """One thing that a program can ask."""

    anchor: str
    method: str
    path: str
    summary: str
    description: SafeString
    parameters: Sequence[Field]
    body: Sequence[Field]
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Group:
    """The operations of one tag."""

    name: str
    operations: Sequence[Operation]


@dataclass(frozen=True)
class Shape:
    """A named JSON object."""

    name: str
    description: SafeString
    fields: Sequence[Field]


class ReadablePage(DocsBase):
    """What ``/api/v1/docs`` shows."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        """Return the page for ``api``."""
        schema = api.get_openapi_schema(path_params=kwargs)
        context = {
            "title": schema["info"]["title"],
            "version": schema["info"]["version"],
            "introduction": markdown(schema["info"]["description"]),
            "openapi_url": self.get_openapi_url(api, kwargs),
            "groups": groups(schema),
            "shapes": shapes(schema),
        }
        return render(request, "api/docs.html", context)


def groups(schema: Schema) -> list[Group]:
    """Return the operations by tag, in the order in which the API names them."""
    found: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                found.setdefault(operation["tags"][0], []).append(_operation(schema, path, method, operation))
    return [Group(name, operations) for name, operations in found.items()]


def shapes(schema: Schema) -> list[Shape]:
    """Return the named objects, by name."""
    named = schema["components"]["schemas"]
    return [
        Shape(_shape_name(name), markdown(found.get("description", "")), _fields(found))
        for name, found in sorted(named.items())
        if "properties" in found
    ]


def markdown(text: str) -> SafeString:
    """Return our own text as HTML; HTML inside it is escaped."""
    return SafeString(MARKDOWN.render(text))


def _operation(schema: Schema, path: str, method: str, operation: Schema) -> Operation:
    return Operation(
        anchor=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=markdown(operation.get("description", "")),
        parameters=[_parameter(parameter) for parameter in operation.get("parameters", ())],
        body=_body(schema, operation),
        answers=[_answer(status, answer) for status, answer in operation["responses"].items()],
    )


def _parameter(parameter: Schema) -> Field:
    schema = parameter["schema"]
    return Field(
        name=parameter["name"],
        type=_type(schema),
        shape=_linked(schema),
        is_required=parameter.get("required", False),
        note=markdown(parameter.get("description", "") or schema.get("description", "")),
    )


def _body(schema: Schema, operation: Schema) -> list[Field]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return []
    return _fields(schema["components"]["schemas"][_reference(content["schema"])])


def _answer(status: str, answer: Schema) -> Answer:
    content = answer.get("content", {}).get("application/json", {})
    return Answer(status=str(status), shape=_linked(content.get("schema", {})))


def _fields(shape: Schema) -> list[Field]:
    required = shape.get("required", ())
    return [
        Field(
            name=name,
            type=_type(found),
            shape=_linked(found),
            is_required=name in required,
            note=markdown(found.get("description", "")),
        )
        for name, found in shape.get("properties", {}).items()
    ]


def _type(schema: Schema) -> str:
    """Return a schema in words."""
    if "$ref" in schema:
        return _shape_name(_reference(schema))
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(str(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("format") or schema.get("type") or "any JSON")


def _linked(schema: Schema) -> str:
    """Return the name of the shape inside a schema, or ""."""
    for option in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
        if "$ref" in option:
            return _shape_name(_reference(option))
    return ""


def _reference(schema: Schema) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[-1]


def _shape_name(name: str) -> str:
    """Return a shape's name as people read it: ``Page_TaskRow_`` is a ``Page of TaskRow``."""
    return re.sub(r"^(\w+?)_(\w+)_$", r"\1 of \2", name).removesuffix("Shape")
