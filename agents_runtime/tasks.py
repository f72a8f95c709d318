"""Celery's shells: they turn a message's ids into a call, and log whatever goes wrong.

Messages say where to look, never what to do: doubled, late or lost, they do no harm.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import psycopg
from celery import shared_task
from celery.signals import worker_ready
from django.db import Error as DatabaseError
from django.db import connection

from agents_runtime import recovery, retention, steps, threads

log = logging.getLogger(__name__)
OPTIONS = {"ignore_result": True, "acks_late": True, "reject_on_worker_lost": True}


@shared_task(name="agents_runtime.start_run", **OPTIONS)
def start_run(run_id: str) -> None:
    """Bring a run forward."""
    _advance(run_id)


@shared_task(name="agents_runtime.resume_interrupt", **OPTIONS)
def resume_interrupt(run_id: str, pause_id: str) -> None:
    """Bring a run forward because a pause was answered; the database says which ones were."""
    log.debug("woken by an answer", extra={"pause": pause_id})
    _advance(run_id)


@shared_task(name="agents_runtime.sweep", ignore_result=True)
def sweep() -> None:
    """Wake workers for what a worker left behind that was here before this one."""
    try:
        recovery.sweep_after_start()
    except Exception:  # the shell: whatever it was, the scheduler sweeps too
        log.exception("a worker that started could not sweep")
    finally:
        connection.close()  # back into the pool


@worker_ready.connect
def _sweep_first(sender: Any, **_: Any) -> None:
    """Have a child sweep: the parent itself must hold no session that later children would inherit."""
    try:
        sender.app.send_task(sweep.name, retry=False)
    except Exception:  # the shell: whatever it was, the scheduler sweeps too
        log.warning("a worker that started could not ask for a sweep", exc_info=True)


@shared_task(name="agents_runtime.tidy_thread", **OPTIONS)
def tidy_thread(run_id: str) -> None:
    """Prune or delete the thread of a run that is over."""
    try:
        threads.tidy(UUID(run_id), keep=retention.kept_for())
    except Exception:  # the shell: whatever it was, the scheduler asks again
        log.exception("a thread could not be tidied", extra={"run": run_id})


def _advance(run_id: str) -> None:
    try:
        try:
            steps.advance(UUID(run_id))
        except (DatabaseError, psycopg.Error):
            log.warning("the database was lost on the way; trying once more", extra={"run": run_id})
            _drop_dead_connections()
            steps.advance(UUID(run_id))
    except Exception:  # the shell: whatever it was, the sweep tries again
        log.exception("a run could not be brought forward", extra={"run": run_id})
    finally:
        connection.close()  # back into the pool


def _drop_dead_connections() -> None:
    """After a restart of the database every idle connection is dead, and each would fail one more run."""
    connection.close()
    connection.pool.check()  # type: ignore[attr-defined]
