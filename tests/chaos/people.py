"""The people of a schedule: what they ask for, how they decide, and what they were told.

Each asks through the API with an idempotency key, in a web process of their own that may die on the way; then
they ask again with the same key. Of a tool whose end nobody knows they tell what its traces say.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from agents_runtime.canonical import decode
from agents_runtime.models import Run, ToolExecution
from reviewer.accounts.models import User
from reviewer.models import ReviewTask
from tests.agents import effects
from tests.cast import Cast, token_of
from tests.chaos.invariants import Told

Json = Any
APPROVE: Json = {"type": "approve"}
REJECT: Json = {"type": "reject", "message": "not today"}
AGENTS = ("t-per-call", "t-async", "t-batched", "t-boss", "t-async")
ASYNC_AGENTS = ("t-async",)
EDITABLE = ("pay", "apay")


@dataclass(frozen=True)
class Ask:
    """One request of one person."""

    person: int
    token: str
    path: str
    body: Json
    key: str

    def job(self) -> dict[str, Json]:
        """Return it as a job for the nursery."""
        return {"do": "post", "path": self.path, "body": self.body, "token": self.token, "key": self.key}

    def told(self, reply: dict[str, Json]) -> Told:
        """Return what came of it."""
        answer = self.body.get("answer") if isinstance(self.body, dict) else None
        return Told(self.key, self.path, self.person, answer, reply["status"], reply["answer"])


class People:
    """Everybody who asks, with their programs."""

    def __init__(self, cast: Cast, chance: random.Random) -> None:
        self._tokens = {person.pk: token_of(person) for person in cast.people.values()}
        self._chance = chance
        self._reviewers = (cast.reviewer, cast.reviewer2)
        self._developer, self._lead, self._admin = cast.developer, cast.lead, cast.admin
        self._asked = 0

    def start(self, agent: str, numbers: Any) -> Ask:
        """Ask for a run."""
        return self._ask(
            self._developer, "runs", {"agent": agent, "input": story(agent, self._chance, numbers)}
        )

    def cancel(self, run: Run) -> Ask:
        """Ask for the end of a run."""
        return self._ask(self._developer, f"runs/{run.pk}/cancel", None)

    def retry(self, run: Run) -> Ask:
        """Ask for one more try; a lead sees no run that has asked nothing yet."""
        return self._ask(self._admin, f"runs/{run.pk}/retry", None)

    def settle(self, attempt: ToolExecution) -> Ask:
        """Say what became of an attempt, by the traces of its tool."""
        has_happened = effects.count(attempt.tool, **decode(attempt.arguments)) > 0
        body = {
            "outcome": "happened" if has_happened else "run_again",
            "result": "it did happen" if has_happened else None,
            "execution": attempt.pk,
        }
        return self._ask(self._lead, f"runs/{attempt.run_id}/settle", body)

    def decide(self, task: ReviewTask) -> list[Ask]:
        """Decide a task; sometimes two people do at once, and not the same."""
        asks = [self._decision(task, person) for person in self._reviewers]
        return asks if self._chance.random() < 0.25 else asks[:1]

    def token(self) -> str:
        """Return the token of somebody who sees every queue."""
        return self._tokens[self._reviewers[0].pk]

    def _decision(self, task: ReviewTask, person: User) -> Ask:
        body = {"answer": self._answer(task), "digest": task.digest}
        return self._ask(person, f"tasks/{task.pk}/decision", body)

    def _answer(self, task: ReviewTask) -> Json:
        choice = self._chance.random()
        if choice < 0.2:
            return REJECT
        if choice < 0.4 and task.tool in EDITABLE:
            changed = {**task.arguments, "to": "edited"}
            return {"type": "edit", "edited_action": {"name": task.tool, "args": changed}}
        return APPROVE

    def _ask(self, person: User, path: str, body: Json) -> Ask:
        self._asked += 1
        return Ask(person.pk, self._tokens[person.pk], path, body, key=f"chaos-{self._asked}")


def story(agent: str, chance: random.Random, numbers: Any) -> Json:
    """Return an input of two turns of up to three calls; no two calls of a schedule are the same."""
    turns = [
        {
            "say": "Let me do that.",
            "calls": [_call(agent, chance, next(numbers)) for _ in range(chance.randint(1, 3))],
        }
        for _ in range(2)
    ]
    text = json.dumps(turns)
    if agent == "t-boss":
        delegated = {"name": "delegate", "args": {"task": text}}
        text = json.dumps([{"say": "Let somebody do that.", "calls": [delegated]}])
    return {"messages": [{"role": "user", "content": text}]}


def _call(agent: str, chance: random.Random, number: int) -> dict[str, Json]:
    if chance.random() < 0.15:
        return {"name": "look", "args": {"what": str(number)}}
    if agent == "t-async":
        return {"name": "apay", "args": {"to": "a", "amount": number}}
    paid: dict[str, Json] = {"name": "pay", "args": {"to": "a", "amount": number}}
    return chance.choice([paid, {"name": "drop", "args": {"path": str(number)}}])
