"""A site of one page with a form on it, for a real Chromium under the strict policy of the real pages.

The page around a form is made here; the forms, the styles and the script are the real ones.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString
from playwright.sync_api import Page, Route

from reviewer import cards
from reviewer.cards import render
from tests.cards.browser import Post
from tests.cards.making import Reviewer

SITE = "http://cards.test"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
STATIC = Path(settings.STATICFILES_DIRS[0])
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


class Desk:
    """A site of one page with one form on it, answering as the real one does; or of what it ``shows``."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.reviewer: Reviewer | None = None
        self.content: SafeString | None = None
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.set_default_timeout(60_000)  # milliseconds; a busy machine may be slow
        page.route(f"{SITE}/**", self.answer)

    def open(self, reviewer: Reviewer) -> Page:
        self.reviewer = reviewer
        self.page.goto(f"{SITE}/")
        return self.page

    def show(self, content: SafeString) -> Page:
        """Show a page of cards that nobody will send."""
        self.content = content
        self.page.goto(f"{SITE}/")
        return self.page

    @property
    def reading(self) -> cards.Reading:
        assert self.reviewer is not None
        assert self.reviewer.reading is not None
        return self.reviewer.reading

    def answer(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        file = STATIC / path.removeprefix("/static/")
        if path.startswith("/static/") and file.is_file():
            route.fulfill(body=file.read_bytes(), content_type=TYPES[file.suffix])
            return
        headers = {"Content-Security-Policy": POLICY}
        if self.content is not None:
            body = page_of(self.content)
            route.fulfill(body=body, content_type="text/html; charset=utf-8", headers=headers)
            return
        assert self.reviewer is not None
        if route.request.method == "POST":
            fields = parse_qs(route.request.post_data or "", keep_blank_values=True)
            self.reviewer._read(Post(fields))
        reading = self.reviewer.reading
        status = 422 if reading and reading.errors and not reading.is_op else 200
        route.fulfill(
            status=status, body=self.html(), content_type="text/html; charset=utf-8", headers=headers
        )

    def html(self) -> str:
        assert self.reviewer is not None
        reading, card = self.reviewer.reading, self.reviewer.card
        content = format_html(
            '<h1>{}</h1>{}<form method="post" action="/" novalidate data-card-form>{}'
            '<button data-send class="btn btn--primary">Send</button></form>'
            "<div data-card-diff>{}</div>",
            card.title if card else "Form",
            render.render_arguments(card) if card else "",
            self.reviewer.html_safe,
            render.render_diff(reading.changes if reading else ()),
        )
        return page_of(content)


def page_of(content: SafeString) -> SafeString:
    """Return a whole page around its content, with the real styles and the real script."""
    return format_html(
        '<!doctype html><html lang="en"><head><title>Cards</title><link rel="icon" href="data:,">'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="/static/css/app.css">'
        '<script type="module" src="/static/js/card.js"></script></head>'
        '<body><main class="page">{}</main></body></html>',
        content,
    )
