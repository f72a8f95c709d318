"""Fixtures that drive a real Chromium. Without one the tests are skipped, loudly; CI forbids the skip."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from reviewer.accounts.models import User
from tests.processes import Site

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
REFUSED = "the server responded with a status of 422"
"""What Chromium says of a form that was refused, which is what it should be."""
HOW_TO_INSTALL = (
    "no Chromium found, so NO BROWSER TEST RAN. Install one (Debian: apt-get install chromium; "
    "or `playwright install chromium`), or name one in COUNTERSIGN_CHROMIUM."
)


def find_chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    named = os.environ.get("COUNTERSIGN_CHROMIUM")
    if named:
        return named
    return next((found for found in map(shutil.which, NAMES) if found), None)


@pytest.fixture
def browser(committed_db: None) -> Iterator[Browser]:
    """A fresh Chromium for one test: if Playwright's event loop outlived it, async tests would break."""
    path = find_chromium()
    if path is None:
        _do_without()
    # Playwright keeps an event loop in this thread, which Django would take for async code.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
            yield found
            found.close()
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


def _do_without() -> None:
    if os.environ.get("COUNTERSIGN_REQUIRE_BROWSER") == "1":
        pytest.fail(HOW_TO_INSTALL)
    print(f"\n\n{'!' * 100}\n{HOW_TO_INSTALL}\n{'!' * 100}", file=sys.__stderr__)
    pytest.skip(HOW_TO_INSTALL)


@pytest.fixture
def page_of(browser: Browser, live_server_process: Site) -> Iterator[Callable[..., Page]]:
    """Open a signed-in page: ``page_of(cast.reviewer)``. Any console error or blocked content fails the test.

    Each page is a browser context of its own. Keyword arguments go to ``Browser.new_context``, such as
    ``viewport``, ``color_scheme`` or ``java_script_enabled``. ``page.goto("/tasks/")`` needs no host.
    """
    complaints: list[str] = []

    def complain(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and REFUSED not in message.text:
            complaints.append(f"{message.location.get('url')}: {message.text}")

    def opened(person: User | None = None, **options: Any) -> Page:
        page = signed_in(browser, live_server_process, person, **options)
        page.on("console", complain)
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        return page

    yield opened
    assert not complaints, complaints


def signed_in(browser: Browser, site: Site, person: User | None, **options: Any) -> Page:
    """Open a page of its own context, signed in as somebody, or as nobody, whose complaints nobody counts."""
    context = browser.new_context(base_url=site.url, **options)
    context.set_default_timeout(15_000)
    if person is not None:
        context.add_cookies([{"name": site.session_cookie, "value": _session_key(person), "url": site.url}])
    return context.new_page()


def _session_key(person: User) -> str:
    """Sign the person in as the login page would, and return the session's key."""
    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.create()
    assert store.session_key is not None
    return store.session_key
