"""The command that installs a Redis or Valkey, for a machine that has none and is to be its own store."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

_HERE = frozenset({"localhost", "127.0.0.1", "::1", None})
_PROGRAMS = ("redis-server", "valkey-server")
_OS_RELEASE = Path("/etc/os-release")  # os-release(5)
# By ID or ID_LIKE of os-release. Fedora has Valkey in Redis's place since its release 41.
_COMMANDS = {
    "debian": "sudo apt install redis-server",
    "fedora": "sudo dnf install valkey && sudo systemctl start valkey",
    "macos": "brew install redis && brew services start redis",
}


def missing_server(url: str, release: str | None = None, platform: str = sys.platform) -> str:
    """What is to be done where ``url`` means this machine and it has no server; "" for others.

    ``release`` is the text of os-release, by default this machine's.
    """
    parts = urlsplit(url)
    here = parts.scheme == "unix" or (parts.scheme in ("redis", "rediss") and parts.hostname in _HERE)
    if not here or any(map(shutil.which, _PROGRAMS)):
        return ""
    if release is None:
        release = _OS_RELEASE.read_text() if _OS_RELEASE.exists() else ""
    names = ["macos"] if platform == "darwin" else _names(release)
    command = next((_COMMANDS[name] for name in names if name in _COMMANDS), "")
    how = f"with {command}" if command else "from your system's packages (Redis 7 or Valkey)"
    return f"no Redis is installed on this machine: install one {how}"


def _names(release: str) -> list[str]:
    said: Mapping[str, str] = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
    return [word for name in ("ID", "ID_LIKE") for word in said.get(name, "").strip("\"' ").split()]
