"""No library is older than the first version without a known hole (facts: assurance 3.6)."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.version import Version

SAFE_FROM = {
    "celery": "5.2.2",  # CVE-2021-23727
    "channels": "3.0.3",  # CVE-2020-35681
    "cryptography": "50.0.2",
    "daphne": "4.2.2",  # CVE-2026-44545, CVE-2026-44546
    "deepagents": "0.7.32",  # tests only: the subagents' gates as measured
    "django": "5.2.16",  # CVE-2026-48588, CVE-2026-53877, CVE-2026-53878
    "langchain": "1.5.2",  # per-call interrupts
    "langgraph": "1.2.24",  # CVE-2026-28277; unique interrupt ids
    "langgraph-checkpoint": "4.3.1",  # CVE-2025-64439, CVE-2026-27794, CVE-2026-48775, NUL in namespaces
    "langgraph-checkpoint-postgres": "3.2.0",
    "nh3": "0.3.8",
    "redis": "4.5.4",  # CVE-2023-28858, CVE-2023-28859
}


@pytest.mark.parametrize(("package", "least"), SAFE_FROM.items())
def test_a_library_has_no_known_hole(package: str, least: str) -> None:
    assert Version(version(package)) >= Version(least)
