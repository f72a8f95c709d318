"""Cards: from a schema to a form, a megabyte folded, and thirty cards on one page

Each time stands beside a plain way to do the like in the same run: the same JSON read and its schema compiled
by the engine; an empty Django form of as many fields drawn; the megabyte written as JSON. Times
are processor time.
"""

import gzip
import json
import re
import time
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any, Final

import jsonschema_rs
from django import forms
from django.forms.renderers import DjangoTemplates

from reviewer import cards
from reviewer.cards import render
from reviewer.cards.card import Form
from reviewer.cards.compile import compile_form
from reviewer.cards.tree import walk
from tests.bench.figures import Times, table
from tests.bench.product import Product
from tests.cards.making import SAMPLES, card_of

ROUNDS: Final = 60
MEGABYTE: Final = "lorem ipsum dolor sit amet. " * 37_450
CARDS: Final = 30


def measure(_product: Product) -> None:
    """Print medians and what they are to a baseline; nothing is asked of the running product."""
    cards_by_name = {name: card_of(sample) for name, sample in SAMPLES.items()}
    name = max(cards_by_name, key=lambda name: _fields(_opened(cards_by_name[name])))
    form = _opened(cards_by_name[name])
    choice, fields = form.choice, _fields(form)
    text, plain, large = json.dumps(choice.root), _django_form(fields), {"body": MEGABYTE}
    times, renderer = Times(), DjangoTemplates()
    for _ in range(ROUNDS):
        _take(
            times, "compile the form", lambda: compile_form(choice.schema, choice.initial, root=choice.root)
        )
        _take(times, "json.loads and jsonschema-rs", lambda: jsonschema_rs.validator_for(json.loads(text)))
        _take(times, "draw the form", lambda: render.render_form(form))
        _take(times, "draw an empty Django form", lambda: plain(renderer=renderer).as_div())
        _take(times, "draw 1 MB folded", lambda: _drawn(large))
        _take(times, "json.dumps of 1 MB", lambda: json.dumps(large, ensure_ascii=False))
    print(f"The largest sample is {name}: {len(text):,} characters of schema, {fields} fields.")
    print("Targets: compile 5 ms, draw 20 ms, 1 MB 200 ms.")
    table(
        times.seconds,
        against={
            "compile the form": "json.loads and jsonschema-rs",
            "draw the form": "draw an empty Django form",
            "draw 1 MB folded": "json.dumps of 1 MB",
        },
    )
    _weigh()


def _weigh() -> None:
    """Print how heavy thirty cards with their open forms are on one page."""
    samples = islice(cycle(SAMPLES.values()), CARDS)
    opened = [card_of(sample, card_id=f"c{number}") for number, sample in enumerate(samples)]
    began = time.process_time()
    html = "".join(
        str(render.render_arguments(card)) + str(render.render_form(_opened(card))) for card in opened
    )
    took = time.process_time() - began
    sent, elements = len(gzip.compress(html.encode())), len(re.findall(r"<[a-z]", html))
    print(
        f"{CARDS} cards with open forms: {len(html.encode()):,} bytes ({sent:,} compressed), "
        f"{elements:,} elements, {html.count('<script')} scripts, drawn in {took * 1000:.0f} ms"
    )


def _opened(card: cards.Card) -> Form:
    return card.open((card.choice("edit") or card.choices[0]).verdict)


def _fields(form: Form) -> int:
    return sum(1 for _ in walk(form.tree.root))


def _drawn(arguments: dict[str, Any]) -> str:
    card = cards.build(cards.CardRequest("t", "send", arguments, True))
    return str(render.render_arguments(card, expand_url="?expand="))


def _django_form(fields: int) -> type[forms.Form]:
    return type("Plain", (forms.Form,), {f"field{number}": forms.CharField() for number in range(fields)})


def _take(times: Times, name: str, act: Callable[[], object]) -> None:
    began = time.process_time()  # nothing here waits, and what else the machine does is no part of it
    act()
    times.seconds[name].append(time.process_time() - began)
