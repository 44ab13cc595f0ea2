"""Machines of a fleet on one: each with folders, a clock and a way to Redis of its own that can be cut and made long.

All of it stands in a network namespace where the kernel drops what a cut or a bad line loses (``iptables``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from tests.stores.redis_servers import RedisServer
from tests.web.ports import free_port
from tests.web.running import PROJECT, RunningWeb, crawl_command, small_settings, start
from tests.web.zygote import Process

LEASE_SECONDS = 15
SETTINGS = {
    "FETCH_TIMEOUT_SECONDS": "3",
    "FLEET_LEASE_SECONDS": str(LEASE_SECONDS),
    "FLEET_PARTITIONS": "12",
    "SCOPE_MAX_DEPTH": "1000",
}
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of unshare(2)
_CHUNK_BYTES = 65536


def own_network() -> None:
    """From now on this process and its children have a network without anything else in it. OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(_NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare: a network namespace needs root")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def built_shim(folder: Path) -> Path:
    """What is preloaded into a machine's processes."""
    source, made = Path(__file__).with_name("machine.c"), folder / "machine.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"], check=True)
    return made


class Relay:
    """A port that leads to Redis: the machine's way to it."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.target = target
        self.delay_seconds = 0.0  # each way
        self._rules: list[list[str]] = []
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def cut(self, *, there: bool = True, back: bool = True) -> None:
        """Nothing arrives any more: at Redis, here, or neither way."""
        for side, wanted in (("--dport", there), ("--sport", back)):
            if wanted:
                self._drop([side, str(self.port)])

    def lose(self, share: float) -> None:
        """So much of all packets, each way."""
        for side in ("--dport", "--sport"):
            self._drop([side, str(self.port), "-m", "statistic", "--mode", "random", "--probability", f"{share:g}"])

    def heal(self) -> None:
        """All of it arrives again, what was underway as well."""
        for rule in self._rules:
            subprocess.run(["iptables", "-D", *rule], check=True)
        self._rules.clear()
        self.delay_seconds = 0.0

    def _drop(self, words: list[str]) -> None:
        rule = ["INPUT", "-i", "lo", "-p", "tcp", *words, "-j", "DROP"]
        subprocess.run(["iptables", "-A", *rule], check=True)
        self._rules.append(rule)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        ready.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pipe(reader, far_writer), self._pipe(far_reader, writer))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            with contextlib.suppress(OSError):
                while True:
                    due, data = await waiting.get()
                    await asyncio.sleep(due - time.monotonic())
                    if not data:
                        break
                    writer.write(data)
                    await writer.drain()
            writer.close()

        delivering = asyncio.ensure_future(deliver())
        data = b"-"
        while data:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except OSError:
                data = b""
            waiting.put_nowait((time.monotonic() + self.delay_seconds, data))
        await delivering


class Power:
    """A machine's clock, and what a loss of its power leaves of its files."""

    def __init__(self, folder: Path, shim: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._clock, self._synced = folder / "clock", folder / "synced"
        self.set_clock(0.0)
        self.environment = {
            "LD_PRELOAD": str(shim),
            "MACHINE_CLOCK": str(self._clock),
            "MACHINE_SYNCED": str(self._synced),
        }

    def set_clock(self, ahead_seconds: float) -> None:
        """The wall clock jumps there."""
        self._clock.touch()
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<q", int(ahead_seconds * 1e9)))

    def lost(self, folder: Path) -> int:
        """Cut files, of processes that were killed, back to what was durable; how many."""
        known: dict[int, int] = {}
        for line in self._synced.read_text().splitlines():
            inode, size = line.split()
            known[int(inode)] = int(size)
        cut = 0
        for path in [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]:
            found = path.stat()
            if found.st_size > (durable := known.get(found.st_ino, 0)):
                os.truncate(path, durable)
                cut += 1
        return cut


class PoweredRedis(RedisServer):
    """One whose clock can be set, and whose power can fail."""

    def __init__(self, folder: Path, power: Power, *options: str) -> None:
        super().__init__(folder, *options)
        self.power = power

    def command(self) -> list[str]:
        return ["env", *(f"{name}={value}" for name, value in self.power.environment.items()), *super().command()]


class Machine:
    """Workers in one or more folders, with one way to Redis."""

    def __init__(self, name: str, folder: Path, web: RunningWeb, redis: RedisServer | str, shim: Path) -> None:
        """``redis``: the server, or what STATE_URL is to be."""
        self.name = name
        self.folder = folder / name
        self.web = web
        self.relay = Relay(redis.port) if isinstance(redis, RedisServer) else None
        self.state_url = f"redis://127.0.0.1:{self.relay.port}/0" if self.relay else str(redis)
        self.power = Power(folder / f"{name}-power", shim)
        self.settings: dict[str, str] = {}
        self.running: dict[str, Process] = {}
        self.ends: list[tuple[str, int]] = []  # of workers that ended by themselves
        self._outputs: dict[str, IO[bytes]] = {}
        self.places: dict[str, Path] = {}  # CRAWL_DIR of each worker
        self.folder.mkdir(parents=True)

    def start(self, *names: str, accept: str = "", place: Path | None = None) -> None:
        """Start workers, or go on with those that were started before; none: the one of the machine's name."""
        for name in names or (self.name,):
            crawl_dir = self.places.setdefault(name, place or self.folder)
            command = crawl_command(
                self.web.folder / "seeds.txt", crawl_dir, self.web.folder / "hosts", self._settings(name)
            )
            if accept:
                command += ["-a", f"accept={accept}"]
            if name not in self._outputs:
                self._outputs[name] = (self.folder / f"{name}.log").open("ab")
            self.running[name] = start(command, self._outputs[name], PROJECT, **self.power.environment)

    def _settings(self, name: str) -> Mapping[str, str]:
        known = {"STATE_URL": self.state_url, "FLEET_WORKER": name, "TRAP_ALLOW_FILE": str(self.web.folder / "allowed")}
        return {**small_settings(self.web), **SETTINGS, **known, **self.settings}

    def signal(self, number: int, *names: str) -> None:
        """To those workers, or all."""
        for name in names or list(self.running):
            self.running[name].send_signal(number)

    def kill(self, *names: str) -> None:
        """kill -9 of those workers, or of all."""
        for name in names or list(self.running):
            process = self.running.pop(name)
            process.send_signal(signal.SIGKILL)
            process.wait()

    def stop(self, *names: str) -> None:
        """In good order; those workers, or all."""
        self.signal(signal.SIGTERM, *names)
        for name in names or list(self.running):
            self.ends.append((name, self.running.pop(name).wait(120)))

    def look(self) -> list[tuple[str, int]]:
        """Workers that have ended by themselves since the last look, with their exit statuses."""
        found = [(name, process.returncode) for name, process in self.running.items() if process.poll() is not None]
        for name, _ in found:
            del self.running[name]
        ended = [(name, -1 if status is None else status) for name, status in found]
        self.ends += ended
        return ended

    def lose_power(self) -> int:
        """All workers at once, with what was not durable; how many files were cut."""
        self.kill()
        return self.power.lost(self.folder)

    def destroy(self) -> None:
        """The machine with its disk."""
        self.kill()
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self._outputs.clear()
        self.places.clear()

    def relay_cut(self, *, there: bool = True, back: bool = True) -> None:
        """See ``Relay.cut``."""
        self._way().cut(there=there, back=back)

    def relay_far(self, delay_seconds: float, share: float) -> None:
        """So long each way, and so much of all packets lost."""
        self._way().delay_seconds = delay_seconds
        self._way().lose(share)

    def relay_heal(self) -> None:
        """See ``Relay.heal``."""
        self._way().heal()

    def _way(self) -> Relay:
        if self.relay is None:
            raise ValueError(f"{self.name} has no way of its own to Redis")
        return self.relay

    def said(self, name: str = "") -> str:
        """What a worker has put out."""
        path = self.folder / f"{name or self.name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Kill what is left."""
        self.kill()
        for output in self._outputs.values():
            output.close()


def folders_of(machines: Iterable[Machine]) -> list[Path]:
    """The folders of all workers that there are."""
    return sorted(path.parent for machine in machines for path in machine.folder.rglob("warc") if path.is_dir())
