"""Programs as a user without rights, where the tests are root's: Chromium refuses root its sandbox, for one."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

#: nobody's, on every Linux.
NOBODY = 65534
# Root's own folder is closed, and an interpreter may lie in it: an open one stands in its place, with that alone in it.
_OPEN = 'mount --bind "$1" "$2"; mount -t tmpfs -o mode=755 none "$3"; mkdir -p "$1"; mount --move "$2" "$1"; shift 3'


def as_ordinary_user(command: Sequence[str], home: Path) -> list[str]:
    """The command that runs another as an ordinary user, to whom ``home`` is given; itself where the tests are one's.

    As root: with util-linux's ``setpriv``, and ``unshare`` where the interpreter lies in a closed folder.
    """
    if os.geteuid() != 0:
        return [*command]
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--", *command]
    interpreter = Path(sys.base_prefix).resolve()
    closed = [folder for folder in interpreter.parents if not folder.stat().st_mode & stat.S_IXOTH]
    if not closed:
        return user
    spare = home / "interpreter"
    spare.mkdir(exist_ok=True)
    opened = ["unshare", "--mount", "sh", "-ec", f'{_OPEN}; exec "$@"', "sh", str(interpreter), str(spare)]
    return [*opened, str(closed[-1]), *user]
