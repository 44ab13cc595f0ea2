"""What other users of the machine may do in a crawl's folder: not read what is secret, and not lead us out of it.

Secret are the frontier (hubs sign with secrets that stand in it), ``run.json`` and ``status.json`` (settings, and what
is asked just now), ``crawl.toml`` (a proxy may have its password there), ``worker.json``, and ``control`` (what is said
there is done). What is archived is as open as the umask makes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.stores.atomic_files import SECRET_FILE
from crawlerproject.stores.operator_files.control import CONTROL
from crawlerproject.stores.redis.worker_identity import LIFE_FILE
from crawlerproject.stores.rocks.view import RUN_FILE, STATUS_FILE

FRONTIER = "frontier"
_SECRET_FILES = (RUN_FILE, STATUS_FILE, LIFE_FILE, "crawl.toml")  # the last one: crawl_file.py
_SECRET_FOLDER = 0o700
_OTHERS = 0o077


def refuse_links_out(folder: Path, within: Path | None = None) -> None:
    """Raise OperatorError for a link in ``folder`` that leads out of it: what we write would land elsewhere.

    ``folder`` itself may be a link, unless it must stay ``within`` another.
    """
    if within is not None and folder.is_symlink() and not folder.resolve().is_relative_to(within.resolve()):
        raise _leads_out(folder)
    home = os.path.realpath(folder)
    for link in _links(home):
        target = os.path.realpath(link)
        if target != home and not target.startswith(home + os.sep):
            raise _leads_out(folder / os.path.relpath(link, home))


def close_to_others(folder: Path) -> None:
    """Take from others what is secret in ``folder``, also where an earlier version made it."""
    folders = ((folder / name, _SECRET_FOLDER) for name in (FRONTIER, CONTROL))
    for path, mode in (*folders, *((folder / name, SECRET_FILE) for name in _SECRET_FILES)):
        try:
            if path.stat().st_mode & _OTHERS:
                path.chmod(mode)
        except FileNotFoundError:
            continue
        except PermissionError as error:
            raise OperatorError(
                f"{path} belongs to another user and can be read by others; run as its owner, or change that."
            ) from error


def _links(folder: str) -> Iterator[str]:
    """Every symbolic link below a folder; an entry costs about a microsecond, a folder ten.

    The copies of robots.txt are left out: ten million hosts have as many folders, and what writes there looks itself.
    """
    waiting, left_out = [folder], os.path.join(folder, "log", "robots")
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        yield entry.path
                    elif entry.is_dir(follow_symlinks=False) and entry.path != left_out:
                        waiting.append(entry.path)
        except (FileNotFoundError, PermissionError):  # gone, or said where it is needed
            continue


def _leads_out(link: Path) -> OperatorError:
    return OperatorError(
        f"{link} is a link that leads out of the crawl's folder, to {os.path.realpath(link)}; move what it names into "
        "the folder (or mount it there), or set CRAWL_DIR to a folder without such links."
    )
