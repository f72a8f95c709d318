"""Cards: any ``response_schema`` -> field tree -> form -> typed answer -> difference.

Pure functions on decoded JSON. Knows no models, no LangGraph and no request objects. HTML comes from
``reviewer.cards.render`` alone; everything else that other rooms need is named here.
"""

from reviewer.cards.card import (
    Card,
    CardRequest,
    Form,
    Reading,
    build,
    build_input_form,
    changes_of,
    place_errors,
    read_decision,
    read_form,
)
from reviewer.cards.decisions import Choice, verdict_of
from reviewer.cards.diff import Change, diff
from reviewer.cards.errors import FieldError
from reviewer.cards.renderers import renderer
from reviewer.cards.validate import validate
from reviewer.cards.values import MISSING, Json

__all__ = [
    "MISSING",
    "Card",
    "CardRequest",
    "Change",
    "Choice",
    "FieldError",
    "Form",
    "Json",
    "Reading",
    "build",
    "build_input_form",
    "changes_of",
    "diff",
    "place_errors",
    "read_decision",
    "read_form",
    "renderer",
    "validate",
    "verdict_of",
]
