"""The budget of database connections."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from reviewer.management.budget import allowed_connections, needed_connections, shortfall


@pytest.mark.django_db
def test_the_embedded_server_has_room_for_the_default_number_of_workers() -> None:
    assert shortfall() == ""
    assert needed_connections(4) <= allowed_connections()


@pytest.mark.django_db
def test_a_start_with_too_many_workers_is_refused_in_one_line(settings: Settings) -> None:
    settings.CELERY_WORKER_CONCURRENCY = 400
    with pytest.raises(CommandError, match=r"allows \d+ connections; 400 workers.* COUNTERSIGN_WORKERS"):
        call_command("prepare")
