"""What the product refuses to start with: each in one clear line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from reviewer.config.environment import read_environment
from tests.servers import PROJECT, servers

PRODUCTION = {"COUNTERSIGN_DEMO": "0", "COUNTERSIGN_DEBUG": "0"}
REFUSALS = [
    ({"HOST": "0.0.0.0"}, "Demo mode has known passwords"),
    ({"HOST": "192.0.2.7"}, "Demo mode has known passwords"),
    ({"HOST": "::"}, "Demo mode has known passwords"),
    ({"HOST": "countersign.example"}, "Demo mode has known passwords"),
    ({"HOST": "0.0.0.0", **PRODUCTION, "COUNTERSIGN_DEBUG": "1"}, "Debug mode shows internals"),
    ({"COUNTERSIGN_SECRET_KEY": ""}, "COUNTERSIGN_SECRET_KEY is not set"),
    ({"DATABASE_URL": ""}, "DATABASE_URL is not set"),
    ({"REDIS_URL": ""}, "REDIS_URL is not set"),
]


def boot(code: str = "import reviewer.config.settings", **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env=servers().child_environment(**changes),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("changes", "line"), REFUSALS)
def test_an_unsafe_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], line: str
) -> None:
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=line):
        read_environment()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"])
def test_demo_mode_starts_on_a_loopback_host(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("HOST", host)
    assert read_environment().demo


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"LANGGRAPH_STRICT_MSGPACK": ""}, "LANGGRAPH_STRICT_MSGPACK must be set to true"),
        ({"LANGGRAPH_STRICT_MSGPACK": "false"}, "LANGGRAPH_STRICT_MSGPACK must be set to true"),
        ({"DATABASE_URL": "sqlite:///x"}, "must start with postgresql://"),
        ({"HOST": "0.0.0.0"}, "Demo mode has known passwords"),
    ],
)
def test_a_process_ends_before_it_does_anything(changes: dict[str, str], line: str) -> None:
    done = boot(**changes)
    assert done.returncode != 0
    assert line in done.stderr.splitlines()[-1]


def test_production_has_secure_cookies_and_no_debug() -> None:
    code = (
        "from reviewer.config import settings as s;"
        "print(s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE, s.SESSION_COOKIE_NAME, s.DEBUG)"
    )
    shown = boot(code, HOST="0.0.0.0", **PRODUCTION)
    assert shown.stdout.split() == ["True", "True", "__Host-countersign", "False"]
