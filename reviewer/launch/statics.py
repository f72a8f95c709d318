"""Are the collected static files of a home those of this checkout? Collecting is slow, asking does not."""

import hashlib
from pathlib import Path

from reviewer.launch.home import Home
from reviewer.launch.options import PROJECT

SOURCE = PROJECT / "static"
STAMP = "static.stamp"


def are_current(home: Home) -> bool:
    return (home.path / "static").is_dir() and home.read(STAMP) == fingerprint(SOURCE)


def note_current(home: Home) -> None:
    home.write_private(STAMP, fingerprint(SOURCE))


def fingerprint(folder: Path) -> str:
    """Changes when a file is added, removed or touched."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()
