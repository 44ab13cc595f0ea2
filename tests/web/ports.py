"""A free port for a server that a test starts as a process, and may start again."""

from __future__ import annotations

import random
import socket

# Below the ports that Linux gives outgoing connections (net.ipv4.ip_local_port_range, from 32,768): none of these
# takes one between our look and the server's start, or while the server is stopped for a moment.
_PORTS = range(12_000, 22_000)
# A Redis Cluster's servers talk to each other so far above their port.
_SECOND_PORT = 10_000


def free_port() -> int:
    """A port that nothing listens on at this moment, on any address; nor on the one 10,000 above it."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(_PORTS)
        if all(_is_free(number) for number in (port, port + _SECOND_PORT)):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        # As servers do: what only waits for the last packets of an ended connection does not count.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
