"""Makes a process of another crawler resolve the names of a hosts(5) file."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any


def use_hosts(path: Path) -> None:
    """Make this process resolve the names of a hosts(5) file."""
    known = {name: ip for ip, name in (line.split() for line in path.read_text().splitlines())}
    lookup, by_name = socket.getaddrinfo, socket.gethostbyname

    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return lookup(known.get(name, host), *rest, **named)

    def gethostbyname(name: str) -> str:
        return by_name(known.get(name, name))

    socket.getaddrinfo, socket.gethostbyname = getaddrinfo, gethostbyname
