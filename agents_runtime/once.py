"""Effects of plain nodes that happen once: for code that no tool and no gate stands around.

A node may run again: after a crash, at its next interrupt, after a retry. ``once`` keeps the effect from
happening again with it. It opens a row in the same ledger as the gate before the block and closes it after.

    answer = interrupt("Pay?")
    with once("invoice-7781:pay", {"amount": "18.40"}) as effect:
        if not effect.done:
            effect.result(pay("18.40", key=effect.key))
    receipt = effect.value

It guards an effect, and checks no decision: what a person said is the node's own business.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from agents_runtime import ledger
from agents_runtime.canonical import Json, to_json
from agents_runtime.checkpointer import serializer
from agents_runtime.gate import Gate, ended, outside_key, standing_gate
from agents_runtime.models import ToolExecution
from agents_runtime.states import ExecutionStatus

NO_RUN = "once() works in a run of Countersign only; this code runs outside of one, or in a raw thread."
NO_KEY = "once() needs a key from your own data that names this effect within its run, such as an invoice."
ASK_BEFORE = "Ask before once(), not inside it: the block starts over when the answer comes."
HAS_RESULT = "This effect has its result already."


@dataclass
class Effect:
    """What a block of ``once`` works with.

    ``done``: it happened before, or a person said so; then ``value`` is its result, and the block must not do
    it again. ``key``: 64 hex digits that name it to the outside world, the same at every attempt.
    """

    key: str
    done: bool
    value: Any = None

    def result(self, value: Any) -> Any:
        """Keep what the effect gave: JSON, dates, decimals, messages. Without a call the result is None."""
        if self.done:
            raise RuntimeError(HAS_RESULT)
        self.value = value
        return value


@contextmanager
def once(key: str, args: Json) -> Iterator[Effect]:
    """Do what stands in the block at most once in this run, however often the node runs.

    ``key`` comes from business data and carries the turn where a loop repeats the effect. ``args`` is what
    the effect does: the same key with other ``args`` is refused. A block that raises is not tried again until
    a person asks for it; one that was cut off is in doubt, and a person says what happened.
    Raises ``LookupError`` outside of a run and ``ValueError`` without a key.
    """
    if not (isinstance(key, str) and key.strip()):
        raise ValueError(NO_KEY)
    gate = standing_gate()
    if gate is None:
        raise LookupError(NO_RUN)
    answer = gate.ask(
        key,
        lambda: ledger.open_once(run_id=gate.run, epoch=gate.epoch, key=key, arguments=to_json(args)),
    )
    assert answer is not None  # only a tool can be without a gate
    name = outside_key(gate.run, answer.call_key)
    if isinstance(answer, ledger.Finished):
        yield Effect(name, done=True, value=_stored(answer))
        return
    effect = Effect(name, done=False)
    with _recorded(gate, answer.execution, effect):
        yield effect
    effect.done = True


@contextmanager
def _recorded(gate: Gate, execution: ToolExecution, effect: Effect) -> Iterator[None]:
    """Record how the block ended; what tears it down from outside leaves its row open, and so in doubt."""
    try:
        yield
    except GraphInterrupt as asked:
        _failed(gate, execution, ASK_BEFORE)
        raise RuntimeError(ASK_BEFORE) from asked
    except (Exception, GraphBubbleUp) as error:
        _failed(gate, execution, f"{type(error).__name__}: {error}")
        raise
    gate.close(execution, lambda: ended(effect.value))


def _failed(gate: Gate, execution: ToolExecution, error: str) -> None:
    gate.close(execution, lambda: {"status": ExecutionStatus.RAISED, "error": error})


def _stored(answer: ledger.Finished) -> Any:
    if answer.replay is None:
        return answer.asserted
    return serializer().loads_typed((answer.replay_type, answer.replay))
