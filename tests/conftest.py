"""What every test may use. How to use it: the fixtures' own docstrings; the people are in ``tests.cast``.

The servers start here, before Django reads its settings: one set for each process that runs tests, so that
processes share nothing. Tests run as the application's role, which may not change tables; only the making and
the wiping of the test database uses stronger roles.
"""

from __future__ import annotations

import os
import sys

import django
import pytest
from django.conf import settings

from tests.servers import NO_SERVERS, servers

RUNS_TESTS = "PYTEST_XDIST_WORKER" in os.environ or not any(
    argument.startswith(("-n", "--numprocesses")) for argument in sys.argv
)
"""False in the process that only hands the tests out to others."""

if RUNS_TESTS:
    if settings.configured:
        raise pytest.UsageError(
            "Unset DJANGO_SETTINGS_MODULE: with it, settings are read before the servers run."
        )
    os.environ.update(servers().environment())
    django.setup()
    pytest_plugins = ["tests.database", "tests.doors", "tests.processes", "tests.browsers"]
else:  # it reads the tests' modules, so it needs settings, but no server; its children start with neither
    with pytest.MonkeyPatch.context() as environment:
        for name, value in NO_SERVERS.items():
            environment.setenv(name, value)
        django.setup()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers when all is over."""
    if RUNS_TESTS:
        servers().stop()
