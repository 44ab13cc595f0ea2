"""A hosts(5) file, read when it changed."""

from __future__ import annotations

import os
from ipaddress import ip_address
from socket import AF_INET, inet_pton

from crawlerproject.errors import OperatorError

_LOOK_SECONDS = 1.0
"""How often the file's time is looked at: a stat a second costs nothing, one a request would."""

MISSING = (0, 0, 0)


class HostsFile:
    """Names to addresses; IPv4 first. A file that is missing is empty; one that cannot be read stops the start."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names: dict[str, tuple[str, ...]] = {}
        self._stamp = MISSING
        self._look_at = 0.0

    def addresses(self, name: str, now: float) -> tuple[str, ...]:
        """The name's addresses (lower case, no final dot), () when it is not listed. ``now`` is epoch seconds."""
        if now >= self._look_at or now < self._look_at - _LOOK_SECONDS:  # the second: the clock was set back
            self._look_at = now + _LOOK_SECONDS
            self._read_if_changed()
        return self._names.get(name, ())

    def _read_if_changed(self) -> None:
        try:
            status = os.stat(self._path)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp == self._stamp:
                return
            with open(self._path, encoding="utf-8", errors="replace") as file:
                names = parse_hosts(file.read())
        except (FileNotFoundError, NotADirectoryError):
            stamp, names = MISSING, {}
        except OSError as error:
            if self._stamp != MISSING:
                return  # it was readable a moment ago: keep what we have
            raise OperatorError(f"FETCH_HOSTS_FILE {self._path!r} cannot be read: {error.strerror}") from error
        self._stamp, self._names = stamp, names


def parse_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """``address name [alias ...]`` a line, ``#`` comments; lines that are neither are passed over."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2:
            continue
        address = _address(words[0])
        if not address:
            continue
        for name in words[1:]:
            addresses = found.setdefault(name.lower().rstrip("."), [])
            if address not in addresses:
                addresses.append(address)
    return {name: tuple(sorted(listed, key=_is_v6)) for name, listed in found.items()}


def _address(word: str) -> str:
    """As it is usually written; "" when it is none."""
    try:
        if not _is_v6(word):
            inet_pton(AF_INET, word)  # an eighth of what ip_address takes, and there may be a hundred thousand lines
            return word
        return str(ip_address(word))
    except (OSError, ValueError):
        return ""


def _is_v6(address: str) -> bool:
    return ":" in address
