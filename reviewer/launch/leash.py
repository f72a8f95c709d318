"""Runs a command that ends when its parent does, as another account if asked.

Run as a file by a bare interpreter, so it imports only the standard library:

    leash.py PARENT_PID DEATH_SIGNAL UID:GID|- COMMAND [ARGUMENT ...]

The kernel sends DEATH_SIGNAL to the command when the parent is gone, however it went (Linux; elsewhere the
next start finds what was left). A trampoline, because `preexec_fn` is unsafe in a process with threads.
"""

import ctypes
import os
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def drop_to(account: str) -> None:
    uid, gid = (int(part) for part in account.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def die_with_parent(parent: int, signal_number: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    # The parent may have died before the line above; then nobody would ever be told.
    if os.getppid() != parent:
        sys.exit(1)


def main(arguments: Sequence[str]) -> None:
    parent, signal_number, account, *command = arguments
    # Changing the account clears the death signal, so it comes first.
    if account != "-":
        drop_to(account)
    die_with_parent(int(parent), int(signal_number))
    os.execvp(command[0], command)  # noqa: S606 - replacing itself is what this program is for


if __name__ == "__main__":
    main(sys.argv[1:])
