"""Sending the messages that wake a worker: ids only, never in the way of the caller, never needed for safety.

A message that is lost, doubled or late does no harm: the database knows what has to be done, and the sweep
finds it. So sending happens in a thread of its own, and a broker that is down is only logged.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID

from celery import current_app
from django.db import transaction

log = logging.getLogger(__name__)
MAX_WAITING = 1_000


class _Sender:
    """One thread that sends; made anew in a forked child."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="enqueue")
        self.room = threading.BoundedSemaphore(MAX_WAITING)


_sender = _Sender()


def start_run(run_id: UUID) -> None:
    """Once the transaction commits: tell a worker that a run has something to do."""
    transaction.on_commit(partial(send, "agents_runtime.start_run", str(run_id)))


def resume_interrupt(run_id: UUID, pause_id: UUID) -> None:
    """Once the transaction commits: tell a worker that a pause was answered."""
    transaction.on_commit(partial(send, "agents_runtime.resume_interrupt", str(run_id), str(pause_id)))


def tidy_thread(run_id: UUID) -> None:
    """Once the transaction commits: tell a worker that a thread may be pruned or deleted."""
    transaction.on_commit(partial(send, "agents_runtime.tidy_thread", str(run_id)))


def send(task: str, *ids: str) -> None:
    """Send a message soon; return at once, whatever the broker does."""
    sender = _current()
    if not sender.room.acquire(blocking=False):
        log.warning(
            "message not sent: the broker takes none; the sweep will find the work", extra={"task": task}
        )
        return
    sender.thread.submit(_send, sender, task, ids)


def flush() -> None:
    """Wait until everything handed over so far has been sent or given up."""
    _current().thread.submit(lambda: None).result()


def _send(sender: _Sender, task: str, ids: tuple[str, ...]) -> None:
    try:
        current_app.send_task(task, args=list(ids), retry=False)
    except Exception:
        log.warning("message not sent; the sweep will find the work", extra={"task": task}, exc_info=True)
    finally:
        sender.room.release()


def _current() -> _Sender:
    if _sender.pid != os.getpid():
        globals()["_sender"] = _Sender()
    return _sender
