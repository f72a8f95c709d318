"""Celery takes JSON with ids in it, and nothing that could run code when it is read."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path

import pytest
from django.conf import settings

from reviewer.config.celery import app
from tests.processes import Worker

POISON_IS_SEEN_WITHIN_S = 15.0


class Poison:
    """Whoever unpickles it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._folder),)


def test_only_json_is_accepted() -> None:
    assert settings.CELERY_ACCEPT_CONTENT == ["json"]
    assert settings.CELERY_TASK_SERIALIZER == settings.CELERY_RESULT_SERIALIZER == "json"


@pytest.mark.worker
def test_a_pickled_message_is_refused_unread(worker: Worker, tmp_path: Path) -> None:
    folder = tmp_path / "poisoned"
    offset = len(worker.said())
    with app.connection_for_write() as link, link.channel() as channel:
        producer = link.Producer(channel)
        producer.publish(
            pickle.dumps(Poison(folder)),
            routing_key=settings.CELERY_TASK_DEFAULT_QUEUE,
            exchange=settings.CELERY_TASK_DEFAULT_QUEUE,
            content_type="application/x-python-serialize",
            content_encoding="binary",
            headers={"task": "agents_runtime.start_run", "id": "poison", "lang": "py"},
        )
    deadline = time.monotonic() + POISON_IS_SEEN_WITHIN_S
    while "ContentDisallowed" not in worker.said()[offset:] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "ContentDisallowed" in worker.said()[offset:]
    assert not folder.exists()
    assert worker.is_running
