"""Sending the messages that wake a worker: ids only, never in the way of the caller, never needed for safety.

A message that is lost, doubled or late does no harm: the database knows what has to be done, and the sweep
finds it. So sending happens in a thread of its own, and a broker that is down is only logged.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any
from uuid import UUID, uuid4

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

    @cached_property
    def producer(self) -> Any:
        """What puts messages into queues; it connects when it first does, and again after a failure."""
        return producer_over(current_app.connection_for_write())


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
        publish(sender.producer, task, ids)
    except Exception:
        log.warning("message not sent; the sweep will find the work", extra={"task": task}, exc_info=True)
    finally:
        sender.room.release()


def producer_over(connection: Any) -> Any:
    """Return what puts messages into the one queue over a connection; a setting takes its time to look up."""
    conf = current_app.conf
    return current_app.amqp.Producer(
        connection, routing_key=conf.task_default_queue, serializer=conf.task_serializer
    )


def publish(producer: Any, task: str, ids: tuple[str, ...]) -> None:
    """Put a message of Celery's into its queue.

    Celery's own ``send_task`` also looks up routes and makes a result to wait for; here is one queue, and no
    result. Nor do ids have to be shortened to be shown.
    """
    message = current_app.amqp.as_task_v2(
        str(uuid4()), task, args=ids, ignore_result=True, argsrepr=repr(ids), kwargsrepr="{}"
    )
    producer.publish(message.body, headers=message.headers, **message.properties)


def _current() -> _Sender:
    if _sender.pid != os.getpid():
        globals()["_sender"] = _Sender()
    return _sender
