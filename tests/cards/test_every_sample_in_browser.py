"""The card of every stored payload in a real Chromium: accessible in both themes, no wider than a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from playwright.sync_api import Page, ViewportSize

from reviewer.cards import render
from tests.cards.desk import Desk
from tests.cards.making import SAMPLES, Reviewer, card_of

pytestmark = pytest.mark.browser

AXE = (Path(__file__).parents[1] / "vendor" / "axe" / "axe.min.js").read_text()
# Everything of WCAG 2.2 A and AA that axe can check; of the dark theme, what themes can change.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE = """async rules => {
  const moving = document.getAnimations().filter(motion => motion instanceof CSSTransition);
  await Promise.allSettled(moving.map(motion => motion.finished));
  const found = await axe.run(document, {runOnly: rules, resultTypes: ["violations"]});
  return found.violations.flatMap(({id, nodes}) => nodes.map(({target, any, all, none}) =>
    `${id}: ${target.join(" ")} (${[...any, ...all, ...none].map(check => check.message).join("; ")})`));
}"""
TOO_WIDE = """() => [...document.querySelectorAll("main, article, form, .field, .item, .kv, .diff")]
  .filter(part => part.scrollWidth > part.clientWidth + 1)
  .map(part => `${part.closest("article")?.id} ${part.tagName}.${part.className} ${part.id}`)"""
TOO_NARROW = """() => [...document.querySelectorAll(
    ".input, .field__label > *, .item__name, .field__hint, .kv dd")]
  .filter(part => part.offsetParent && (part.matches(".input") ? part.offsetWidth < 48
    : part.offsetWidth < 48 && part.offsetHeight > 80))
  .map(part => `${part.closest("article")?.id} ${part.tagName}.${part.className} ${part.name ?? ""}`)"""
PHONE: ViewportSize = {"width": 390, "height": 844}


def as_opened(reviewer: Reviewer) -> None:
    """Leave the form as it is."""


def as_refused(reviewer: Reviewer) -> None:
    """Send the form without having touched it."""
    reviewer.send()


def as_filled(reviewer: Reviewer) -> None:
    """Add what can be added, and move what can be moved."""
    for way in ("set:value:", "add:", "up:"):
        pressed = next((button for button in reviewer.page.buttons() if button.startswith(way)), None)
        if pressed is not None:
            reviewer.press(pressed)


def gallery(bring: Callable[[Reviewer], None]) -> SafeString:
    """Return every sample's arguments and every form of its decisions, each brought to one state."""
    articles = format_html_join("", "{}", ((part,) for part in _articles(bring)))
    return format_html('<div class="pane"><h1>Cards</h1>{}</div>', articles)


def _articles(bring: Callable[[Reviewer], None]) -> Iterator[SafeString]:
    for name, sample in SAMPLES.items():
        card = card_of(sample, card_id=name)
        forms = [_form(Reviewer.at(card, choice.verdict), bring) for choice in card.choices]
        yield format_html(
            '<article id="{}"><h2 dir="auto">{}</h2>{}{}</article>',
            name,
            card.title,
            render.render_arguments(card),
            format_html_join("", "{}", ((form,) for form in forms)),
        )


def _form(reviewer: Reviewer, bring: Callable[[Reviewer], None]) -> SafeString:
    bring(reviewer)
    changes = reviewer.reading.changes if reviewer.reading else ()
    return format_html(
        '<section class="panel"><header><h3>{}</h3></header>'
        '<form class="panel__body" method="post">{}</form>{}</section>',
        reviewer.form.verdict,
        reviewer.html_safe,
        render.render_diff(changes),
    )


def faults(page: Page) -> Iterator[str]:
    """Look at the page in both themes, and say what is wrong."""
    page.evaluate(AXE)
    for theme, rules in (("light", TAGS), ("dark", ["color-contrast"])):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        for fault in page.evaluate(RUN_AXE, rules):
            yield f"{theme}: {fault}"


@pytest.mark.parametrize("bring", [as_opened, as_refused, as_filled])
def test_the_card_of_every_sample_is_accessible_in_both_themes_and_fits_a_phone(
    desk_of: Callable[..., Desk], bring: Callable[[Reviewer], None]
) -> None:
    desk = desk_of(viewport={"width": 1440, "height": 900})
    page = desk.show(gallery(bring))
    assert page.locator("article").count() == len(SAMPLES) == 43
    found: list[Any] = list(faults(page))
    found += page.evaluate(TOO_NARROW)
    page.set_viewport_size(PHONE)
    found += page.evaluate(TOO_WIDE) + page.evaluate(TOO_NARROW)
    desk.complaints.clear()  # axe itself tries inline styles
    assert not found, "\n".join(found)
