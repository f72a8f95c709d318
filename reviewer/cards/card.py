"""A card: what an agent asks, as a person sees and answers it. The door for the web and the API.

``build`` makes a card, ``Card.open`` a form of one decision, ``read_decision`` reads what was posted. No
request objects, no models, no HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from reviewer.cards import operations, places, titles, unicode, view
from reviewer.cards.compile import compile_form
from reviewer.cards.decisions import ANSWER, APPROVE, EDIT, RESPOND, Choice, choices, soften, verdict_of
from reviewer.cards.diff import Change, diff
from reviewer.cards.errors import FieldError
from reviewer.cards.masking import Mask
from reviewer.cards.names import BASE, OPERATION, VERDICT, Posted, PostedData, field_of
from reviewer.cards.read import read
from reviewer.cards.tree import Tree, walk
from reviewer.cards.validate import validate_part, validate_tree
from reviewer.cards.values import MISSING, Json, json_text


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a card is made from, decoded. ``args`` is a plain interrupt's value where ``tool`` is ""."""

    card_id: str
    tool: str
    args: Json
    response_schema: Json
    description: str = ""
    title_template: str | None = None
    args_schema: Json | None = None
    risk: str = "low"
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one decision, as the reviewer left it."""

    tree: Tree
    form_id: str
    choice: Choice
    posted: Posted = field(default_factory=Posted)
    focus: str | None = None
    can_approve: bool = False

    @property
    def verdict(self) -> str:
        return self.choice.verdict


@dataclass(frozen=True, slots=True)
class Reading:
    """What a post says. The answer counts only without an operation and without errors."""

    verdict: str
    form: Form
    answer: Json = MISSING
    is_op: bool = False
    errors: tuple[FieldError, ...] = ()
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Card:
    """One question to a person."""

    request: CardRequest
    choices: tuple[Choice, ...]

    @cached_property
    def title(self) -> str:
        """What it is about, in one line without secrets: lists and the trail hold it, too."""
        request = self.request
        return titles.title(request.title_template, request.tool, self.mask.value(request.args))

    def choice(self, verdict: str) -> Choice | None:
        """Return the decision of this name, or None where it is not allowed."""
        return next((choice for choice in self.choices if choice.verdict == verdict), None)

    @cached_property
    def rows(self) -> tuple[view.Row, ...]:
        """What will happen, as rows."""
        schema, root = self.args_schema
        return view.rows(schema, self.request.args, root=root)

    @cached_property
    def hidden(self) -> int:
        """How many deceptive characters and words there are in what the agent sent."""
        request = self.request
        return unicode.count([request.tool, request.args, request.description])

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """Pointers of the arguments that show less than the whole at first sight."""
        return view.folded(self.rows)

    @property
    def closed(self) -> tuple[str, ...]:
        """Pointers of everything that its reader has to open: what is folded, then what is masked."""
        return (*self.folded, *self.concealed)

    @cached_property
    def concealed(self) -> tuple[str, ...]:
        """Pointers of the arguments that are masked until their reader asks for them."""
        return tuple(view.concealed(self.rows))

    @cached_property
    def mask(self) -> Mask:
        """Masks the secrets of arguments, and of changes to them, for the eye."""
        schema, root = self.args_schema
        return Mask(schema, root)

    def for_the_eye(self, answer: Json) -> Json:
        """Return an answer without the secrets in it."""
        choice = self._choice_of(answer)
        return answer if choice is None else Mask(choice.schema, choice.root).value(answer)

    def for_the_record(self, answer: Json) -> Json:
        """Return an answer without what its schema says is not for showing."""
        choice = self._choice_of(answer)
        return answer if choice is None else Mask(choice.schema, choice.root, by_name=False).value(answer)

    def changes_for_the_record(self, answer: Json) -> tuple[Change, ...]:
        """Return how an edit differs from what was proposed, as ``for_the_record``."""
        changes = self.changes(answer)
        if not changes:
            return ()
        schema, root = self.args_schema
        return Mask(schema, root, by_name=False).changes(changes)

    @property
    def args_schema(self) -> tuple[Json, Json]:
        """The schema of the arguments as far as it is known, and the document it belongs to."""
        edit = self.choice(EDIT)
        if edit is not None and edit.args_pointer:
            return edit.args_schema, edit.root
        known = self.request.args_schema
        return (True, True) if known is None else (known, known)

    def open(self, verdict: str, *, draft: Json = MISSING) -> Form:
        """Return the form of a decision, started from the agent's proposal or from an earlier answer.

        Raises ``LookupError`` for a decision that is not allowed.
        """
        choice = self.choice(verdict)
        if choice is None:
            raise LookupError(verdict)
        posted = Posted() if draft is MISSING else Posted({BASE: [json_text(draft, indent=None)]})
        return self.form(choice, posted)

    def validate(self, answer: Json) -> tuple[FieldError, ...]:
        """Return what is wrong with an answer that came without a form."""
        choice = self._choice_of(answer)
        if choice is None:
            return (FieldError("", "verdict"),)
        return validate_part(answer, choice.schema, choice.root)

    def changes(self, answer: Json) -> tuple[Change, ...]:
        """Return how the arguments of an edit differ from those proposed."""
        edited = answer.get("edited_action") if isinstance(answer, dict) else None
        if not isinstance(edited, dict) or "args" not in edited:
            return ()
        return diff(self.request.args, edited["args"])

    def _choice_of(self, answer: Json) -> Choice | None:
        return self.choice(verdict_of(answer)) or self.choice(_own_verdict(answer)) or self.choice(ANSWER)

    def form(self, choice: Choice, posted: Posted, focus: str | None = None) -> Form:
        """Return the form of a decision, carried on with what was posted."""
        tree = compile_form(choice.schema, choice.initial, posted, root=choice.root)
        return Form(
            tree=tree if choice.verdict in {EDIT, ANSWER} else soften(tree, choice.verdict),
            form_id=f"c{self.request.card_id}-{choice.verdict}",
            choice=choice,
            posted=posted,
            focus=focus,
            can_approve=choice.verdict == EDIT and self.choice(APPROVE) is not None,
        )


def build(request: CardRequest) -> Card:
    """Return the card of a request; never raises for any JSON."""
    allowed = choices(
        request.response_schema, tool=request.tool, args=request.args, args_schema=request.args_schema
    )
    return Card(request=request, choices=allowed)


def changes_of(card: Card, answer: Json) -> tuple[Change, ...]:
    """Return how the arguments of an edit differ from those proposed."""
    return card.changes(answer)


def build_input_form(schema: Json, *, form_id: str, initial: Json = MISSING) -> Form:
    """Return a form for any schema, such as an agent's input; empty, or filled with an example."""
    return _plain_form(Choice(ANSWER, schema, schema, initial=initial), form_id, Posted())


def read_decision(card: Card, data: PostedData) -> Reading:
    """Return what a post to a card says: an operation, an answer, or errors. Nothing is recorded."""
    verdict = _last(data, VERDICT)
    choice = card.choice(verdict)
    if choice is None:
        fallback = card.open(card.choices[0].verdict)
        return Reading(verdict, fallback, errors=(FieldError("", "verdict", path=""),))
    form = card.form(choice, Posted.of(data))
    reading = _read(form, _operation(data), lambda posted, focus: card.form(choice, posted, focus))
    reading = replace(reading, changes=card.changes(reading.answer))
    if reading.is_op or reading.errors:
        return reading
    return replace(reading, errors=_objections(reading))


def read_form(form: Form, data: PostedData) -> Reading:
    """Return what a post to a form without a card says."""
    posted = _plain_form(form.choice, form.form_id, Posted.of(data))
    return _read(
        posted,
        _operation(data),
        lambda changed, focus: _plain_form(form.choice, form.form_id, changed, focus),
    )


def place_errors(form: Form, problems: Iterable[dict[str, Json]]) -> tuple[FieldError, ...]:
    """Return the errors of an agent's own type check at the fields of a form."""
    return places.place_errors(form.tree, problems, names=form.choice.names)


def _plain_form(choice: Choice, form_id: str, posted: Posted, focus: str | None = None) -> Form:
    tree = compile_form(choice.schema, choice.initial, posted, root=choice.root)
    return Form(tree=tree, form_id=form_id, choice=choice, posted=posted, focus=focus)


def _read(form: Form, operation: str | None, remake: Callable[[Posted, str | None], Form]) -> Reading:
    if operation is not None:
        return _operate(form, operation, remake)
    answer, unreadable = read(form.tree)
    told = {error.pointer for error in unreadable}
    invalid = [error for error in validate_tree(form.tree, answer) if error.pointer not in told]
    if unreadable:  # a place that cannot be read yet says more than that the whole does not fit
        invalid = [error for error in invalid if error.code != "schema"]
    order = {node.path: at for at, node in enumerate(walk(form.tree.root))}
    errors = sorted([*unreadable, *invalid], key=lambda error: order.get(field_of(error.path or ""), -1))
    return Reading(form.verdict, form, answer, errors=tuple(errors))


def _operate(form: Form, operation: str, remake: Callable[[Posted, str | None], Form]) -> Reading:
    applied = operations.apply(operation, form.tree, form.posted)
    changed = remake(applied.posted, applied.focus)
    if changed.tree.overflow:
        overflow = FieldError("", "overflow", path="")
        return Reading(form.verdict, form, read(form.tree)[0], is_op=True, errors=(overflow,))
    return Reading(form.verdict, changed, read(changed.tree)[0], is_op=True)


def _objections(reading: Reading) -> tuple[FieldError, ...]:
    """Return what our own rules say against an answer that fits its schema."""
    form = reading.form
    if form.can_approve and form.choice.args_pointer and not reading.changes:
        return (FieldError("", "unchanged", path=""),)
    text = next((node for node in walk(form.tree.root) if node.path == "/~0"), None)
    if form.choice.is_free and text is not None and not str(reading.answer).strip():
        return (FieldError("", "message", path="/~0"),)
    message = reading.answer.get("message") if isinstance(reading.answer, dict) else None
    if reading.verdict == RESPOND and isinstance(message, str) and not message.strip():
        return (FieldError("/message", "message", path="/message"),)
    return ()


def _operation(data: PostedData) -> str | None:
    found = data.getlist(OPERATION)
    return found[-1] if found else None


def _last(data: PostedData, name: str) -> str:
    found = data.getlist(name)
    return found[-1] if found else ""


def _own_verdict(answer: Json) -> str:
    kind = answer.get("type") if isinstance(answer, dict) else None
    return kind if isinstance(kind, str) else ""
