"""A desk in the middle of its day, for tests of every page: real runs in every state a page can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents_runtime.canonical import decode
from agents_runtime.models import AgentSpec, Run
from agents_runtime.states import RunStatus
from reviewer.models import AuditEvent, ReviewTask
from tests.agents import effects
from tests.journeys.walking import Program, ProgramOf, becomes, eventually, task_for
from tests.runtime.driving import APPROVE, REJECT, call, script

SHIPPED = ("refunds", "outgoing_mail", "records_cleanup", "ask_officer", "vendor_payment")
SEEN_BEFORE = ("issue_refund", "merge_records", "archive_record")


@dataclass(frozen=True)
class Day:
    """What a desk's day holds: open cards, cards that were decided, and runs in every state."""

    cards: Sequence[ReviewTask]
    done: Sequence[ReviewTask]
    runs: Sequence[Run]
    finished: Run

    @property
    def main_pages(self) -> list[str]:
        """Return the pages that everybody might try to open."""
        made = AuditEvent.objects.filter(type="decision.made").earliest("pk")
        return [
            "/",
            f"/tasks/{self._card('issue_refund').pk}/",
            "/runs/",
            f"/runs/{self.finished.pk}/",
            "/runs/start/",
            "/runs/start/vendor_payment/",
            "/agents/",
            "/queues/",
            "/queues/payments/",
            "/audit/",
            f"/audit/{made.pk}/",
            "/workload/",
            "/stuck/",
            "/api/v1/docs",
            "/nowhere/",
        ]

    @property
    def more_pages(self) -> list[str]:
        """Return cards at every stage, forms of every kind, runs in every state, and lists with nothing."""
        opened = AuditEvent.objects.filter(type="queue.created").earliest("pk")
        return [
            "/?view=decided",
            "/?q=nothing-fits-this",
            *(f"/tasks/{task.pk}/" for task in self.done),
            *(f"/tasks/{task.pk}/" for task in self.cards if task.tool not in SEEN_BEFORE),
            f"/tasks/{self._card('issue_refund').pk}/?verdict=reject",
            f"/tasks/{self._card('delete_record').pk}/?verdict=approve",
            f"/tasks/{self._card('pay_vendor').pk}/?verdict=edit",
            f"/tasks/{self._card('send_email').pk}/?verdict=edit",
            *(f"/runs/{run.pk}/" for run in self.runs),
            f"/runs/{self.finished.pk}/input/",
            f"/runs/{self.runs[0].pk}/input/",
            "/runs/start/t-per-call/",
            "/search/?q=refund",
            f"/audit/{opened.pk}/",
        ]

    def _card(self, tool: str) -> ReviewTask:
        return next(task for task in self.cards if task.tool == tool)


def live_a_day(program_of: ProgramOf) -> Day:
    """Start runs and bring them to where each kind of page has something to show."""
    effects.flag("die_after_pay").touch()
    dev, reviewer = program_of("developer"), program_of("reviewer")
    doubtful = _started(dev, "t-per-call", script([call("pay", to="somebody", amount=1)]))
    reviewer.decide(task_for(doubtful, "pay"), APPROVE)
    becomes(doubtful, RunStatus.IN_DOUBT)

    effects.flag("fail_drop").touch()
    failed = _started(dev, "t-per-call", script([call("drop", path="/tmp")]))
    odd = _started(dev, "t-asker", {"ask": ""})
    broken = _started(dev, "t-picky", {"ask": ""})
    shipped = {
        name: _started(dev, name, decode(AgentSpec.objects.get(name=name).example_input)) for name in SHIPPED
    }
    finished = _started(dev, "refunds", decode(AgentSpec.objects.get(name="refunds").example_input))

    reviewer.decide(task_for(failed, "drop"), APPROVE)
    reviewer.decide(
        task_for(finished, "issue_refund"), REJECT, reason_code="not_proven", comment="See the ticket."
    )
    reviewer.decide(task_for(finished, "offer_store_credit"), APPROVE)
    eventually(ReviewTask.objects.filter(run=broken).exists, "the question")
    reviewer.decide(ReviewTask.objects.get(run=broken), {"number": 7})
    becomes(finished, RunStatus.FINISHED)
    becomes(failed, RunStatus.FAILED)
    eventually(lambda: ReviewTask.objects.filter(run=broken).count() == 2, "the question again")
    eventually(ReviewTask.objects.filter(run=odd).exists, "the odd question")
    for name in SHIPPED:
        becomes(shipped[name], RunStatus.WAITING)
    open_runs = [*shipped.values(), odd, broken]
    return Day(
        cards=list(ReviewTask.objects.filter(run__in=open_runs, status="open")),
        done=list(ReviewTask.objects.exclude(status="open").order_by("created_at")),
        runs=[shipped["records_cleanup"], failed, doubtful],
        finished=finished,
    )


def _started(program: Program, agent: str, input: Any) -> Run:
    status, answer = program.post("runs", {"agent": agent, "input": input})
    assert status == 201, answer
    return Run.objects.get(pk=answer["id"])
