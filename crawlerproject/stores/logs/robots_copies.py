"""A full copy of each version of each robots.txt, as evidence of what was in force when."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from urllib.parse import quote

from crawlerproject.stores.atomic_files import storage_errors, whole_file

DIGEST_LETTERS = 12
"""Letters of the sha1 in a name: enough to tell the versions of one origin apart."""


def save_robots(folder: Path, origin: str, fetched_at: float, body: bytes) -> Path:
    """Keep ``body`` as ``folder/XX/ORIGIN/TIME-SHA1.txt`` unless it is the newest version; the copy's path.

    ``fetched_at`` in epoch seconds; XX, two letters of the origin's sha1, keeps folders small.
    """
    home = _home(folder, origin)
    digest = sha1(body, usedforsecurity=False).hexdigest()[:DIGEST_LETTERS]
    moment = datetime.fromtimestamp(fetched_at, UTC).strftime("%Y%m%dT%H%M%SZ")
    path = home / f"{moment}-{digest}.txt"
    with storage_errors(path):
        home.mkdir(parents=True, exist_ok=True)
        if home.is_symlink() or home.parent.is_symlink():  # ``refuse_links_out`` leaves these folders out
            raise OSError(errno.ELOOP, "it is a link")
        newest = max((name for name in os.listdir(home) if name.endswith(".txt")), default="")
        if newest.endswith(f"-{digest}.txt"):
            return home / newest
        with whole_file(path, durable=False) as file:
            file.write(body)
    return path


def robots_versions(folder: Path, origin: str) -> list[tuple[datetime, Path]]:
    """Every kept version of an origin's robots.txt, oldest first, with the moment at which it was first seen (UTC)."""
    versions = []
    for path in sorted(_home(folder, origin).glob("*.txt")):
        try:
            seen = datetime.strptime(path.name.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:  # not one of ours
            continue
        versions.append((seen, path))
    return versions


def _home(folder: Path, origin: str) -> Path:
    shard = sha1(origin.encode(), usedforsecurity=False).hexdigest()[:2]
    return folder / shard / quote(origin.replace("://", "_"), safe="")
