"""A client for the tests of the synthetic web: one request, every byte of the answer."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.web.graph import World

_PATIENCE_SECONDS = 10.0


@dataclass(slots=True)
class Client:
    """Asks the hosts of ``world``; ``folder`` holds the server's files."""

    world: World
    folder: Path

    def raw(self, url: str) -> bytes:
        """All that the server sends on a connection that is to be closed after the answer."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        request = f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
        with socket.create_connection((self.world.sites[host].ip, self.world.port), _PATIENCE_SECONDS) as connection:
            connection.sendall(request.encode())
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def status(self, url: str) -> int:
        """The status code of a well-formed answer."""
        return int(self.raw(url).split(b" ", 2)[1])
