"""The file with the crawler's keys, for its owner alone, and the folder of what is published of them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.rules.identity.key_ring import (
    DIRECTORY_PATH,
    KeyRing,
    OwnKey,
    agent_of,
    directory_fields,
    key_directory,
)
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.operator_files.user_settings import USER_FOLDER

DEFAULT_FILE = f"{USER_FOLDER}/identity.json"
_FORMAT = 1
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Netlify, Cloudflare Pages and other hosts of static files read headers from this file.
_HEADERS_FILE = "_headers"


def read_keys(path: str | Path) -> KeyRing:
    """The keys. Raises OperatorError, also for a file that others can read."""
    path = Path(path)
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            raise OperatorError(
                f"IDENTITY_KEY_FILE {path} is open to other users (mode {stat.S_IMODE(mode):o}); run chmod 600 {path}, "
                "and scrapy identity rotate --now if someone may have read it."
            )
        found = json.loads(path.read_bytes())
        keys = tuple(OwnKey(key["x"], key["d"], int(key["from"]), int(key["until"])) for key in found["keys"])
        ring = KeyRing(agent_of(found["agent"]), keys)
        newest = keys[-1]
        if newest.private.public_key() != newest.public:
            raise ValueError("its parts belong to different keys")
    except OSError as error:
        raise OperatorError(
            f"IDENTITY_KEY_FILE {path} cannot be read ({error.strerror}); scrapy identity init https://… makes one."
        ) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise OperatorError(
            f"IDENTITY_KEY_FILE {path} is not what scrapy identity init writes ({error}); put a copy of it back, or "
            "move it away and run scrapy identity init https://…."
        ) from None
    return ring


def write_keys(path: Path, ring: KeyRing) -> None:
    """Put the keys in place, for this user alone. StorageError."""
    keys = [{"x": key.x, "d": key.d, "from": key.signs_from, "until": key.signs_until} for key in ring.keys]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps({"format": _FORMAT, "agent": ring.agent, "keys": keys}).encode(), SECRET_FILE)


def write_directory(folder: Path, ring: KeyRing, now: float) -> list[Path]:
    """Write what is to be published at the agent's origin below ``folder``; the files. ``now``: epoch seconds.

    The key directory, and the headers that its answer is to have in the form that hosts of static files read. Lines of
    that file about other paths stay. StorageError, OSError.
    """
    directory, headers = folder / DIRECTORY_PATH.lstrip("/"), folder / _HEADERS_FILE
    directory.parent.mkdir(parents=True, exist_ok=True)
    replace_file(directory, key_directory(ring.published(now)), 0o644)
    lines = [DIRECTORY_PATH, *(f"  {name}: {value}" for name, value in directory_fields(ring, now).items())]
    replace_file(headers, ("\n".join([*_other_lines(headers), *lines]) + "\n").encode("ascii"), 0o644)
    for path in (directory, headers):
        os.chmod(path, 0o644)  # whatever the umask: it is to be published
    return [directory, headers]


def _other_lines(headers: Path) -> list[str]:
    kept, ours = [], False
    for line in headers.read_text("ascii", errors="replace").splitlines() if headers.exists() else ():
        if not line.startswith((" ", "\t")):
            ours = line.strip() == DIRECTORY_PATH
        if not ours:
            kept.append(line)
    return kept
