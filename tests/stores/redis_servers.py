"""Real redis-servers on free ports of this machine, for as long as a test needs them."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

_START_SECONDS = 20.0


def free_port() -> int:
    """A port that nothing listens on at this moment; low enough for a cluster's second port 10,000 above it."""
    while True:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port: int = sock.getsockname()[1]
        if port < 55_000:
            return port


class RedisServer:
    """One ``redis-server`` with files in ``folder``; may be stopped and started again."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What STATE_URL is to be."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> RedisServer:
        """Start and wait until it answers."""
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is not installed: make packages"
        fixed = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
                 "--appendonly", "yes", "--appendfsync", "always"]  # fmt: skip
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen([program, *fixed, *self.options], stdout=log, stderr=log)
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(RedisError), Redis(port=self.port) as client:
                client.ping()
                return self
            assert self.process.poll() is None, (self.folder / "redis.log").read_text()[-2000:]
            time.sleep(0.02)
        raise AssertionError("redis-server did not answer in time")

    def stop(self, *, kill: bool = False) -> None:
        """End it, in good order or at once."""
        if self.process is not None:
            self.process.kill() if kill else self.process.terminate()
            self.process.wait(_START_SECONDS)
            self.process = None


@contextlib.contextmanager
def redis_server(folder: Path, *options: str) -> Iterator[RedisServer]:
    """A server for the length of a block."""
    server = RedisServer(folder, *options)
    try:
        yield server.start()
    finally:
        server.stop()


@contextlib.contextmanager
def redis_cluster(folder: Path, nodes: int = 3) -> Iterator[list[RedisServer]]:
    """A Redis Cluster of masters without replicas, its slots spread over them."""
    servers = [
        RedisServer(folder / str(number), "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
        for number in range(nodes)
    ]
    try:
        for server in servers:
            server.start()
        places = [f"127.0.0.1:{server.port}" for server in servers]
        subprocess.run(
            ["redis-cli", "--cluster", "create", *places, "--cluster-replicas", "0", "--cluster-yes"],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        until = time.monotonic() + _START_SECONDS
        for server in servers:
            with Redis(port=server.port) as client:
                while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
                    assert time.monotonic() < until
                    time.sleep(0.05)
        yield servers
    finally:
        for server in servers:
            server.stop(kill=True)
