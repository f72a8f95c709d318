"""The static files hang together: icons exist, styles are linked, vendored code is what it says it is."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from tests.servers import PROJECT

STATIC = PROJECT / "static"
SOURCES = [*PROJECT.glob("templates/**/*.html"), *PROJECT.glob("reviewer/**/*.py")]


def test_every_icon_that_a_template_names_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'id="i-([a-z0-9-]+)"', (STATIC / "icons/sprite.svg").read_text()))
    named = {
        name
        for source in SOURCES
        if source.suffix == ".html"
        for name in re.findall(r'{% icon "([a-z0-9-]+)"', source.read_text())
    }

    assert named
    assert named - sprite == set()


def test_every_style_file_is_linked_once_and_only_tokens_name_colours() -> None:
    styles = {path.name: path.read_text() for path in (STATIC / "css").glob("*.css")}
    linked = re.findall(r'@import url\("([a-z]+\.css)"\)', styles.pop("app.css"))
    apart = {"docs.css"}  # the API's pages link it by themselves

    assert sorted(linked) == sorted(set(styles) - apart)
    assert [name for name, text in styles.items() if "!important" in text] == []
    assert [name for name, text in styles.items() if re.search(r"#[0-9a-f]{3,8}\b\s*[;}]", text)] == []


def test_scripts_never_make_code_or_markup_from_text() -> None:
    for script in (STATIC / "js").glob("*.js"):
        text = script.read_text()
        assert not re.search(r"\beval\(|new Function|innerHTML|outerHTML|document\.write|\.style\b", text), (
            script
        )


def test_vendored_code_is_the_published_code() -> None:
    noted = dict(re.findall(r"\| `(htmx/[\w.-]+)` .*`([0-9a-f]{64})` \|", _read("vendor/README.md")))

    assert sorted(noted) == ["htmx/htmx.min.js", "htmx/hx-ws.min.js"]
    for name, digest in noted.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest


def test_every_file_that_ships_has_its_licence() -> None:
    for path in ("vendor/htmx/LICENSE", "icons/LICENSE-lucide-ISC.txt", "fonts/LICENSE-Inter-OFL.txt"):
        assert (STATIC / path).stat().st_size > 200


def _read(name: str) -> str:
    return Path(STATIC / name).read_text()
