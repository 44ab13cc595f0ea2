"""Unix sockets in folders whose paths may be longer than a socket's address, which holds 107 bytes (unix(7))."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# For their owner's processes alone.
_MODE = 0o600
# Connections that wait to be accepted: all workers of a machine at once.
_BACKLOG = 256


def listening(path: Path) -> socket.socket:
    """A socket that listens at ``path``, in the place of one that an earlier process left there. Raises OSError.

    The caller's lock keeps others from the path.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        path.unlink(missing_ok=True)
        os.fchmod(server.fileno(), _MODE)  # before it has a name: no other user ever sees it open
        with _short(path) as address:
            server.bind(address)
        server.listen(_BACKLOG)
    except OSError:
        server.close()
        raise
    return server


def connected(path: Path, timeout_seconds: float | None = None) -> socket.socket:
    """A connection to what listens at ``path``. Raises OSError: a file that is left over is as none."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        client.settimeout(timeout_seconds)
        with _short(path) as address:
            client.connect(address)
    except OSError:
        client.close()
        raise
    return client


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """The path by way of its folder's descriptor: of any length, and whatever the working directory is."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
