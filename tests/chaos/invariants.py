"""The invariants I-1 to I-10 in SQL: each query returns counter-examples, and none may return any.

What the tools really did comes from their own traces on disk, and what people were told from what their
programs were answered; ``load`` puts both beside the product's tables, in a schema of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

MAX_SHOWN = 5
GATED = ("pay", "drop", "apay")

TABLES = """
    CREATE SCHEMA IF NOT EXISTS chaos;
    CREATE UNLOGGED TABLE IF NOT EXISTS chaos.effects (tool text, arguments jsonb);
    CREATE UNLOGGED TABLE IF NOT EXISTS chaos.told (
        key text, path text, person bigint, task uuid, run uuid, answer jsonb, status int, reply jsonb);
    CREATE UNLOGGED TABLE IF NOT EXISTS chaos.listed (task uuid);
    CREATE TABLE IF NOT EXISTS chaos.stale (what text, run uuid, epoch bigint, present bigint);
    CREATE OR REPLACE FUNCTION chaos.watch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        DECLARE present bigint; written bigint; of_run uuid;
        BEGIN
            CASE TG_ARGV[0]
                WHEN 'settled' THEN of_run := NEW.id; written := NEW.settled_epoch;
                WHEN 'delivered' THEN of_run := NEW.run_id; written := NEW.delivery_epoch;
                WHEN 'attempted' THEN of_run := NEW.run_id; written := NEW.epoch;
            END CASE;
            SELECT epoch INTO present FROM public.agents_runtime_run WHERE id = of_run;
            IF written IS NOT NULL AND written <> present THEN
                INSERT INTO chaos.stale VALUES (TG_ARGV[0], of_run, written, present);
            END IF;
            RETURN NULL;
        END $$;
    CREATE OR REPLACE TRIGGER chaos_watch AFTER UPDATE OF settled_epoch ON public.agents_runtime_run
        FOR EACH ROW WHEN (NEW.settled_epoch IS DISTINCT FROM OLD.settled_epoch)
        EXECUTE FUNCTION chaos.watch('settled');
    CREATE OR REPLACE TRIGGER chaos_watch AFTER UPDATE OF delivery_epoch ON public.agents_runtime_pause
        FOR EACH ROW WHEN (NEW.delivery_epoch IS DISTINCT FROM OLD.delivery_epoch)
        EXECUTE FUNCTION chaos.watch('delivered');
    CREATE OR REPLACE TRIGGER chaos_watch AFTER INSERT ON public.agents_runtime_toolexecution
        FOR EACH ROW EXECUTE FUNCTION chaos.watch('attempted');
    CREATE OR REPLACE VIEW chaos.allowed AS
        SELECT task.id AS task, task.run_id AS run, task.pause_id AS pause, task.position, task.tool,
               outcome.decided_by_id AS decision,
               CASE outcome.verdict WHEN 'edit' THEN outcome.answer::jsonb -> 'edited_action' -> 'args'
                                    ELSE task.action::jsonb END AS arguments
        FROM reviewer_reviewtask task JOIN reviewer_outcome outcome ON outcome.task_id = task.id
        WHERE task.kind = 'tool_call' AND outcome.verdict IN ('approve', 'edit');
    CREATE OR REPLACE VIEW chaos.happened AS
        SELECT tool, arguments, count(*) AS times FROM chaos.effects GROUP BY tool, arguments;
    CREATE OR REPLACE VIEW chaos.event AS
        SELECT id, type, actor_id, run_id, task_id, payload::jsonb -> 'facts' AS facts
        FROM reviewer_auditevent;
"""

INVARIANTS = {
    "I-1 a decided task has exactly one outcome, and it is one of its own decisions": """
        SELECT task.id, count(outcome.id) FROM reviewer_reviewtask task
        LEFT JOIN reviewer_outcome outcome ON outcome.task_id = task.id
        LEFT JOIN reviewer_decision decision
            ON decision.id = outcome.decided_by_id AND decision.task_id = task.id
            AND decision.answer = outcome.answer
        WHERE task.status = 'decided' GROUP BY task.id
        HAVING count(outcome.id) <> 1 OR count(decision.id) <> 1""",
    "I-1 an interrupt is delivered at most once": """
        SELECT run_id, interrupt_id, count(*) FROM agents_runtime_pause
        WHERE status = 'delivered' GROUP BY run_id, interrupt_id HAVING count(*) > 1""",
    "I-1 what was allowed in a finished run happened exactly once": """
        SELECT allowed.*, happened.times FROM chaos.allowed allowed
        JOIN agents_runtime_run run ON run.id = allowed.run AND run.status = 'finished'
        LEFT JOIN chaos.happened happened USING (tool, arguments)
        WHERE happened.times IS DISTINCT FROM 1""",
    "I-1 what was allowed in any other run happened at most once": """
        SELECT allowed.*, happened.times FROM chaos.allowed allowed
        JOIN chaos.happened happened USING (tool, arguments) WHERE happened.times > 1""",
    "I-2 nothing happened that was not allowed with exactly these arguments": """
        SELECT happened.* FROM chaos.happened happened LEFT JOIN chaos.allowed allowed USING (tool, arguments)
        WHERE allowed.task IS NULL""",
    "I-2 what a gated tool did has its attempt in the ledger": """
        SELECT happened.* FROM chaos.happened happened
        LEFT JOIN agents_runtime_toolexecution attempt
            ON attempt.tool = happened.tool AND attempt.arguments::jsonb = happened.arguments
        WHERE attempt.id IS NULL""",
    "I-2 an attempt has its decision, made before it by somebody allowed, on what the card showed": """
        SELECT attempt.id, attempt.tool, attempt.arguments FROM agents_runtime_toolexecution attempt
        JOIN agents_runtime_run run ON run.id = attempt.run_id
        LEFT JOIN chaos.allowed allowed
            ON allowed.pause = attempt.pause_id AND allowed.position = attempt.position
            AND allowed.arguments = attempt.arguments::jsonb
        LEFT JOIN reviewer_reviewtask task ON task.id = allowed.task
        LEFT JOIN reviewer_decision decision ON decision.id = allowed.decision
            AND decision.digest = task.digest AND decision.decided_at < attempt.started_at
            AND 'user:' || decision.person_id <> run.requested_by
        LEFT JOIN reviewer_queuemembership member
            ON member.queue_id = task.queue_id AND member.user_id = decision.person_id
        WHERE attempt."grant" <> 'condition' AND (decision.id IS NULL OR member.id IS NULL)""",
    "I-3 what was refused, withdrawn or is undecided was never attempted": """
        SELECT attempt.id, task.id, task.status FROM agents_runtime_toolexecution attempt
        JOIN reviewer_reviewtask task
            ON task.pause_id = attempt.pause_id AND task.position = attempt.position
        LEFT JOIN chaos.allowed allowed ON allowed.task = task.id WHERE allowed.task IS NULL""",
    "I-3 no tool starts once its run is cancelled": """
        SELECT started.run_id, started.id FROM chaos.event started JOIN chaos.event cancelled USING (run_id)
        WHERE started.type = 'tool.started' AND cancelled.type = 'run.cancelled'
        AND started.id > cancelled.id""",
    "I-4 every run has one event of its start, and of its end one": """
        SELECT run.id, run.status,
               count(*) FILTER (WHERE event.type = 'run.started') AS started,
               count(*) FILTER (WHERE event.type = 'run.' || run.status) AS ended
        FROM agents_runtime_run run LEFT JOIN chaos.event event ON event.run_id = run.id
        GROUP BY run.id, run.status
        HAVING count(*) FILTER (WHERE event.type = 'run.started') <> 1
            OR (run.status IN ('finished', 'cancelled')
                AND count(*) FILTER (WHERE event.type = 'run.' || run.status) <> 1)""",
    "I-4 every decision has one event, and every event of one its decision": """
        SELECT decision.id, event.id FROM reviewer_decision decision
        FULL JOIN (SELECT * FROM chaos.event WHERE type = 'decision.made') event
            ON event.task_id = decision.task_id AND event.actor_id = decision.person_id
            AND event.facts ->> 'answer' = decision.answer
        WHERE decision.id IS NULL OR event.id IS NULL""",
    "I-4 every attempt has one event of its start, and of its end one": """
        SELECT attempt.id, attempt.status, count(event.id) FROM agents_runtime_toolexecution attempt
        LEFT JOIN chaos.event event ON event.run_id = attempt.run_id
            AND event.type IN ('tool.started', 'tool.' || attempt.status)
            AND event.facts ->> 'arguments_digest' = attempt.arguments_digest
            AND (event.facts ->> 'attempt')::int = attempt.attempt
        GROUP BY attempt.id, attempt.status
        HAVING count(event.id) <> CASE attempt.status WHEN 'started' THEN 1 ELSE 2 END""",
    "I-4 every pause has one event of its opening, and of its delivery one": """
        SELECT pause.id, pause.status, count(event.id) FROM agents_runtime_pause pause
        LEFT JOIN chaos.event event ON event.run_id = pause.run_id
            AND event.facts ->> 'interrupt' = pause.interrupt_id
            AND (event.facts ->> 'round')::int = pause.round
            AND event.type IN ('run.paused', CASE WHEN pause.closed_at IS NULL THEN '' ELSE 'pause.' END
                               || CASE WHEN pause.closed_at IS NULL THEN '' ELSE pause.status END)
        GROUP BY pause.id, pause.status, pause.closed_at
        HAVING count(event.id) <> CASE WHEN pause.closed_at IS NULL THEN 1 ELSE 2 END""",
    "I-4 no event tells of something that does not exist": """
        SELECT event.id, event.type FROM chaos.event event
        LEFT JOIN agents_runtime_run run ON run.id = event.run_id
        LEFT JOIN reviewer_reviewtask task ON task.id = event.task_id
        WHERE (event.run_id IS NOT NULL AND run.id IS NULL)
           OR (event.task_id IS NOT NULL AND task.id IS NULL)""",
    "I-5 no run is left with work that nobody does": """
        SELECT run.id, run.status, run.error FROM agents_runtime_run run
        WHERE run.status NOT IN ('finished', 'cancelled')""",
    "I-5 every interrupt of a thread has its pause, and every pause its tasks": """
        SELECT run.id, interrupt FROM agents_runtime_run run,
            jsonb_array_elements_text(CASE run.state WHEN '' THEN '[]'
                                      ELSE run.state::jsonb -> 'interrupts' END) AS interrupt
        WHERE NOT EXISTS (SELECT FROM agents_runtime_pause pause
                          JOIN reviewer_reviewtask task ON task.pause_id = pause.id
                          WHERE pause.run_id = run.id AND pause.interrupt_id = interrupt)
        UNION ALL
        SELECT pause.run_id, pause.interrupt_id FROM agents_runtime_pause pause
        LEFT JOIN reviewer_reviewtask task ON task.pause_id = pause.id
        GROUP BY pause.id HAVING count(task.id) <> greatest(1, jsonb_array_length(pause.calls::jsonb))""",
    "I-5 no pause stays answered in a run that ended": """
        SELECT pause.id, pause.status FROM agents_runtime_pause pause
        JOIN agents_runtime_run run ON run.id = pause.run_id AND run.status IN ('finished', 'cancelled')
        WHERE pause.status IN ('pending', 'answered', 'delivering', 'failed', 'in_doubt')""",
    "I-6 a number of a claim belongs to one person": """
        SELECT task_id, facts -> 'claim_version' FROM chaos.event WHERE type = 'task.claimed'
        GROUP BY task_id, facts -> 'claim_version' HAVING count(DISTINCT actor_id) > 1""",
    "I-6 a task takes one decision in a round": """
        SELECT task_id, round, count(*) FROM reviewer_decision GROUP BY task_id, round HAVING count(*) > 1""",
    "I-6 only the worker that took a thread last settles, delivers and starts tools": """
        SELECT * FROM chaos.stale""",
    "I-7 who was told that it is decided has decided": """
        SELECT told.* FROM chaos.told told
        LEFT JOIN reviewer_decision decision ON decision.task_id = told.task
            AND decision.person_id = told.person AND decision.answer::jsonb = told.answer
        WHERE told.path LIKE '%/decision' AND told.status = 200 AND decision.id IS NULL""",
    "I-7 who was refused has changed nothing": """
        SELECT told.* FROM chaos.told told
        JOIN reviewer_decision decision
            ON decision.task_id = told.task AND decision.person_id = told.person
        WHERE told.path LIKE '%/decision' AND told.status <> 200
        AND NOT EXISTS (SELECT FROM chaos.told other WHERE other.task = told.task
                        AND other.person = told.person AND other.status = 200)""",
    "I-7 every decision and every run was confirmed to whoever asked for it": """
        SELECT decision.id::text FROM reviewer_decision decision
        WHERE NOT EXISTS (SELECT FROM chaos.told told WHERE told.task = decision.task_id
                          AND told.person = decision.person_id AND told.status = 200)
        UNION ALL
        SELECT run.id::text FROM agents_runtime_run run
        WHERE NOT EXISTS (SELECT FROM chaos.told told WHERE told.run = run.id AND told.status = 201)""",
    "I-7 one key has one answer": """
        SELECT key, count(DISTINCT reply ->> 'id') FROM chaos.told WHERE status IN (200, 201)
        GROUP BY key HAVING count(DISTINCT reply ->> 'id') > 1""",
    "I-8 the list of open tasks that a person is given is the list in the database": """
        SELECT task.id, listed.task FROM chaos.listed listed
        FULL JOIN (SELECT id FROM reviewer_reviewtask WHERE status = 'open') task ON task.id = listed.task
        WHERE task.id IS NULL OR listed.task IS NULL""",
    "I-9 only people decide, and a deadline can only reject": """
        SELECT outcome.id FROM reviewer_outcome outcome
        LEFT JOIN reviewer_decision decision ON decision.id = outcome.decided_by_id
        LEFT JOIN chaos.told told ON told.task = decision.task_id AND told.person = decision.person_id
        LEFT JOIN reviewer_reviewtask task ON task.id = outcome.task_id AND task.status = 'expired'
        WHERE told.key IS NULL AND (task.id IS NULL OR outcome.verdict <> 'reject')""",
    "I-9 nothing closes twice": """
        SELECT task_id, count(*) FROM chaos.event
        WHERE type IN ('task.expired', 'task.withdrawn', 'task.superseded', 'task.escalated')
        GROUP BY task_id, type HAVING count(*) > 1""",
    "I-10 what was opened is open, decided or closed, and each once": """
        SELECT task.id, task.status,
               count(*) FILTER (WHERE event.type = 'task.opened') AS opened,
               count(*) FILTER (WHERE event.type IN ('decision.made', 'task.expired', 'task.withdrawn',
                                                     'task.superseded')) AS closed
        FROM reviewer_reviewtask task LEFT JOIN chaos.event event ON event.task_id = task.id
        GROUP BY task.id, task.status
        HAVING count(*) FILTER (WHERE event.type = 'task.opened') <> 1
            OR (count(*) FILTER (WHERE event.type IN ('decision.made', 'task.expired', 'task.withdrawn',
                                                      'task.superseded')) = 0) <> (task.status = 'open')""",
}


COPY = """
    INSERT INTO agents_runtime_toolexecution
    SELECT (jsonb_populate_record(copied, %s)).* FROM agents_runtime_toolexecution copied
    WHERE copied.status = ANY(%s) ORDER BY copied.id LIMIT 1
"""
SECOND_ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "I-1 the ledger itself takes an attempt once": (
        {"id": -1, "status": "raised"},
        ["succeeded", "asserted", "raised", "abandoned"],
    ),
    "I-1 the ledger itself takes a success once": (
        {"id": -1, "attempt": 1_000},
        ["succeeded", "asserted"],
    ),
}
"""A second row for a call of the schedule, which the database must refuse: what changes, of which rows."""


@dataclass(frozen=True)
class Told:
    """What a person's program asked and was answered; ``status`` 0 while it does not know."""

    key: str
    path: str
    person: int
    answer: Any
    status: int
    reply: Any

    @property
    def task(self) -> str | None:
        """The task that was decided."""
        return self.path.split("/")[1] if self.path.startswith("tasks/") else None

    @property
    def run(self) -> str | None:
        """The run that was started."""
        return self.reply["id"] if self.path == "runs" and self.status == 201 else None


def prepare(link: psycopg.Connection[Any]) -> None:
    """Make the schema beside the product's tables, and watch from now on who writes."""
    link.execute(TABLES)
    link.execute("TRUNCATE chaos.stale")
    link.commit()


def load(
    link: psycopg.Connection[Any],
    *,
    effects: Iterable[dict[str, Any]],
    told: Iterable[Told],
    listed: Iterable[str],
) -> None:
    """Put traces, answers and the list that a person was given beside the product's tables."""
    with link.cursor() as cursor:
        cursor.execute("DELETE FROM chaos.effects; DELETE FROM chaos.told; DELETE FROM chaos.listed")
        for effect in effects:
            if effect["name"] in GATED:
                arguments = {name: value for name, value in effect.items() if name != "name"}
                cursor.execute(
                    "INSERT INTO chaos.effects VALUES (%s, %s)", [effect["name"], Jsonb(arguments)]
                )
        for one in told:
            row = [
                one.key,
                one.path,
                one.person,
                one.task,
                one.run,
                Jsonb(one.answer),
                one.status,
                Jsonb(one.reply),
            ]
            cursor.execute("INSERT INTO chaos.told VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", row)
        for task in listed:
            cursor.execute("INSERT INTO chaos.listed VALUES (%s)", [task])
    link.commit()


def violations(link: psycopg.Connection[Any]) -> list[str]:
    """Return the counter-examples of every invariant, in words."""
    found: list[str] = []
    for name, query in INVARIANTS.items():
        rows = link.execute(query).fetchmany(MAX_SHOWN)
        found += [f"{name}: {json.dumps(row, default=str)}" for row in rows]
    for name, (changes, statuses) in SECOND_ROWS.items():
        if _is_taken(link, changes, statuses):
            found.append(f"{name}: a second row was taken")
    return found


def _is_taken(link: psycopg.Connection[Any], changes: dict[str, Any], statuses: list[str]) -> bool:
    """Say whether the ledger takes a second row, without leaving it there."""
    try:
        with link.transaction(force_rollback=True):
            return link.execute(COPY, [Jsonb(changes), statuses]).rowcount > 0
    except psycopg.errors.UniqueViolation:
        return False
