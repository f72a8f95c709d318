# ruff: noqa: E501, RUF001 - a corpus of look-alike letters and of whole sentences
"""Characters that deceive are always marked; ordinary writing never is (assurance S-07)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from reviewer import cards
from reviewer.cards import render, titles, unicode
from reviewer.cards.visible import MOST_CHIPS
from tests.cards.browser import Page
from tests.cards.grammar import TEXT
from tests.cards.making import Reviewer, tool_card

CLASSES = {
    "bidirectional": [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C],
    "zero width": [0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF],
    "invisible operators": [0x2061, 0x2062, 0x2063, 0x2064],
    "tags": [0xE0000, 0xE0001, 0xE0020, 0xE0041, 0xE0061, 0xE007F],
    "variation selectors": [0xFE00, 0xFE01, 0xFE0E, 0xFE0F, 0xE0100, 0xE01EF],
    "fillers": [0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x034F, 0x180E],
    "soft hyphen": [0x00AD],
    "controls": [0x00, 0x07, 0x08, 0x0B, 0x0C, 0x0D, 0x1B, 0x1F, 0x7F, 0x80, 0x85, 0x9F],
    "separators": [0x2028, 0x2029],
    "private use": [0xE000, 0xF8FF, 0xF0000, 0x10FFFD],
    "surrogates": [0xD800, 0xDBFF, 0xDC00, 0xDFFF],
    "not characters": [0xFDD0, 0xFFFE, 0xFFFF],
    "look-alike letters": [0x1D400, 0x1D5BA, 0x1D7FF],
}
CORPUS = [
    pytest.param(code, text, id=f"{name} U+{code:04X} {place}")
    for name, codes in CLASSES.items()
    for code in codes
    for place, text in (
        ("start", f"{chr(code)}payment"),
        ("middle", f"pay{chr(code)}ment"),
        ("end", f"payment{chr(code)}"),
    )
]
MIXED = [
    "раypal",
    "pаypal",
    "ехаmple",
    "gооgle",
    "Αpple",
    "Ьank",
    "micrоsoft.com",
    "Ρaypal",
    "аdmin",
    "pay ment раyroll",
    "ѕcope",
    "Bаnk",
    "Pay to раурау today",
    "open аррӏе for me",
    "mail ΑΒΒ please",
    "pａypal",
    "pɑypal",
    "ɡoogle",
    "payᴀl",
    "ⅽom",
    "ᏢᎪᎽ me",
    "аррӏе",
    "р\u0301ау here",
    "Pay раураӏ now, д",
    "a ΚΑΤΙ here, φ",
]

ORDINARY = {
    "English": "Refund €1,840.00 to card •••• 4417 — “charged twice” (order #88041), 5–7 days; naïve café, ½ × 3 = 1.5 µm.",
    "German": "Bitte überweisen Sie 1.840,00 € an Größe & Söhne GmbH, Straße 7, 89073 Ulm. „Danke“!",
    "French": "Le remboursement de 1 840,00 € a été effectué\u00a0: « merci », à bientôt… l’œuvre, ça, Noël\u202f!",
    "Spanish": "¿Cuándo llegó el pedido nº 5? ¡Mañana, señor Ibáñez!",
    "Russian": "Возврат 1840 руб. на карту 4417. Спасибо, ООО «Ромашка»! Ёлка, подъезд.",
    "Greek": "Η επιστροφή χρημάτων έγινε σήμερα. Ευχαριστούμε πολύ, κυρία Παπαδοπούλου!",
    "Arabic": "تم رد المبلغ إلى البطاقة رقم ٤٤١٧ اليوم، شكرًا لكم.",
    "Persian": "می‌خواهم این کتاب‌ها را بخرم. نمی‌دانم.",
    "Hebrew": "ההחזר בוצע היום, תודה רבה! מס׳ 5",
    "Hindi": "राशि वापस कर दी गई है। क्‍या आप ठीक हैं? श्री शर्मा, ५० रुपये।",
    "Chinese": "已向尾号4417的卡退款1840元，谢谢。ABC公司",
    "Japanese": "返金は５～７営業日かかります。Tシャツ、カード番号４４１７、ラーメン。",
    "Korean": "카드 4417로 환불했습니다. LG전자 감사합니다!",
    "Turkish": "İade işlemi tamamlandı, teşekkürler. Iğdır, şeker, ğ.",
    "Polish": "Zażółć gęślą jaźń, Łódź, ćma.",
    "Vietnamese": "Hoàn tiền đã được thực hiện hôm nay, cảm ơn quý khách.",
    "Thai": "คืนเงินเรียบร้อยแล้ว ขอบคุณค่ะ",
    "Emoji": "Done ✅ 👍🏽 👩‍💻 ❤️ 🏳️‍🌈 1️⃣ ☎️ 🇩🇪 ⚠️",
    "Both scripts": "Закажи iPhone и сухой сор, ухо, роса. Windows тоже.",
    "Greek and English": "Αγόρασα iPhone και iPad σήμερα, και laptop.",
    "More emoji": "ℹ️ ◼️ ⤴️ 👨‍👩‍👧 🧑🏽‍🚒 ❤️‍🔥 ↔️ ©️ ™️",
    "Italian": "La rata n. 4 è stata pagata: 1.840,00 €. Perché no? Città, così.",
    "Portuguese": "Não há reembolso; ação e coração à vista.",
    "Czech": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Ukrainian": "Повернення 1840 грн на картку. Дякуємо, їжак і ґанок.",
    "Bengali": "টাকা ফেরত দেওয়া হয়েছে, ধন্যবাদ। র‍্যাব",
    "Tamil": "பணம் திருப்பி அளிக்கப்பட்டது, நன்றி.",
    "Full width": "ＡＢＣ株式会社、Ｔシャツ、１２３",
    "Formulas": "ΔT = 5 K, α = 0.1, Ω, μ",
    "Lines": "one\ntwo\r\nthree\tfour",
}


def marks(text: str) -> list[str]:
    return [run.glyph.code for run in unicode.runs(text) if run.glyph]


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) + len(MIXED) >= 200


@pytest.mark.parametrize(("code", "text"), CORPUS)
def test_a_deceptive_character_is_marked_wherever_it_stands(code: int, text: str) -> None:
    assert marks(text) == [f"U+{code:04X}"]
    assert unicode.count({text: [text]}) == 2
    shown = Page(str(render.visible(text)))
    assert f"U+{code:04X}" in "".join(shown.text)
    assert chr(code) not in "".join(shown.text)


@pytest.mark.parametrize("text", MIXED)
def test_a_word_of_mixed_scripts_is_marked(text: str) -> None:
    assert len(marks(text)) == 1
    assert "glyph--word" in render.visible(text)


def test_each_of_a_megabyte_of_marks_is_told_in_a_page_that_a_browser_can_draw() -> None:
    text = "\u202e<b>" * 50_000 + "p\u0430ypal " * 20_000
    html = str(render.visible(text))
    assert html.count("U+202E") == 50_000
    assert html.lower().count("cyrillic+latin") == 20_000
    assert html.count("<span") + html.count("<mark") == MOST_CHIPS
    assert "\u202e" not in html
    assert "<b>" not in html
    assert len(html) < 8 * len(text)


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_writing_is_not_marked(text: str) -> None:
    assert marks(text) == []
    assert "".join(Page(str(render.visible(text))).text) == text.replace("\r\n", "\n")


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_the_runs_of_a_text_are_the_text(text: str) -> None:
    assert "".join(run.text for run in unicode.runs(text)) == text
    assert not any(mark.startswith("U+") for mark in marks(unicode.visible(text)))


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_is_marked_on_the_card_in_keys_and_values(name: str) -> None:
    for code in CLASSES[name]:
        hidden = chr(code)
        for place in ("{}pay", "pa{}y", "pay{}"):
            text = place.format(hidden)
            card = tool_card(True, {text: "plain", "value": text, "list": [{"deep": text}]})
            assert card.hidden == 3
            shown = "".join(Page(str(render.render_arguments(card))).text)
            assert shown.count(f"U+{code:04X}") == 3
            assert hidden not in shown
            form = Reviewer.at(
                tool_card({"type": "object", "properties": {text: {"type": "string"}}}, {text: text})
            )
            told = "".join(Page(form.html).text)
            assert f"U+{code:04X}" in told or f"\\u{code:04x}" in form.html
            assert hidden not in told


def test_what_is_hidden_in_arguments_is_counted_and_shown_on_the_card() -> None:
    card = tool_card({"type": "object"}, {"no\u200bte": "5\u202e7\u202c", "list": ["\u00ad"]})
    assert card.hidden == 4
    shown = "".join(Page(str(render.render_arguments(card))).text)
    for code in ("U+200B", "U+202E", "U+202C", "U+00AD"):
        assert code in shown


def test_a_field_with_hidden_characters_shows_them_beside_the_control() -> None:
    schema = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    html = Reviewer.at(tool_card(schema, {"note": "5\u202e7"})).html
    assert "U+202E" in html
    assert "1 hidden character" in html


def test_hidden_characters_in_titles_of_fields_and_cards_are_written_out() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "title": "Am\u202eount"}},
        "required": ["a"],
    }
    card = tool_card(schema, {"a": "x\u200by"}, tool="re\u2066fund")
    assert "‹U+2066›" in card.title
    assert "‹U+200B›" in card.title
    assert "U+202E" in Reviewer.at(card).html


def test_json_text_to_edit_holds_no_hidden_character() -> None:
    card = tool_card(True, {"a": "x\u202ey\U000e0041", "b": "\ud800"})
    reviewer = Reviewer.at(card)
    assert "\\u202e" in reviewer.html
    assert marks(reviewer.html) == []
    assert reviewer.send().changes == ()


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '"><svg onload=alert(1)>',
        "javascript:alert(1)",
        "{{ 7*7 }}{% debug %}",
        "</textarea><script>alert(1)</script>",
        "' onfocus=alert(1) autofocus x='",
        '<span class="said" data-tone="ok">Verified by Compliance</span>',
        "<a href=//evil.example hx-get=/x>click</a>",
    ],
)
def test_text_that_looks_like_html_stays_text(text: str) -> None:
    schema = {
        "type": "object",
        "properties": {text: {"type": "string", "title": text, "description": text, "enum": [text, "other"]}},
        "required": [text],
    }
    card = tool_card(schema, {text: text}, tool=text, description=text)
    for html in (
        Reviewer.at(card).html,
        str(render.render_arguments(card)),
        str(render.render_agent_text(text)),
        str(render.render_diff(cards.diff({text: text}, {text: "b"}))),
    ):
        page = Page(html)
        for (tag, attrs), name in itertools.product(
            page.tags, ("onerror", "onload", "onfocus", "href", "src", "hx-get")
        ):
            assert tag not in {"script", "img"}
            assert name not in attrs or (attrs[name] or "").startswith(("#", "/static/")), (tag, attrs)


def test_a_title_comes_from_the_author_not_from_the_model() -> None:
    assert titles.title("Refund {amount}", "refund", {"amount": "5\u202e0"}) == "Refund 5‹U+202E›0"
