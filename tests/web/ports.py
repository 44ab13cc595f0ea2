"""Free ports for the servers of tests, in this process or in one that a test starts and may start again."""

from __future__ import annotations

import os
import random
import socket

# Below the ports that Linux gives outgoing connections (net.ipv4.ip_local_port_range, from 32,768): none of these
# takes one between our look and the server's start, or while the server is stopped for a moment.
_PORTS = range(12_000, 22_000)
# A Redis Cluster's servers talk to each other so far above their port.
_SECOND_PORT = 10_000
# Test processes that run side by side draw from different blocks, so that none takes a port that another just found.
_BLOCK_PORTS = 100


def free_port(*, ports: int = 1) -> int:
    """The first of ``ports`` consecutive ports on which nothing listens, on any address, for TCP or UDP.

    The ports 10,000 above them are free for TCP too.
    """
    chance = random.SystemRandom()
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    blocks = range(worker % workers, len(_PORTS) // _BLOCK_PORTS, workers)
    while True:
        port = _PORTS[chance.choice(blocks) * _BLOCK_PORTS + chance.randrange(_BLOCK_PORTS - ports + 1)]
        if all(_is_free(number) for number in range(port, port + ports)):
            return port


def _is_free(port: int) -> bool:
    return (
        _binds(socket.SOCK_STREAM, port)
        and _binds(socket.SOCK_DGRAM, port)
        and _binds(socket.SOCK_STREAM, port + _SECOND_PORT)
    )


def _binds(kind: socket.SocketKind, port: int) -> bool:
    with socket.socket(socket.AF_INET, kind) as sock:
        if kind == socket.SOCK_STREAM:  # what only waits for the last packets of an ended connection does not count
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
