"""Questions and answers between workers and their supervisor, over a real socket in one loop."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.local.supervisor_link import Lines, QuestionServer, SupervisorLink, json_line
from crawlerproject.runtime.unix_sockets import connected

SECONDS = 60.0


class Office:
    """A server, and what it was asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.admitted: list[tuple[str, int]] = []
        self.exited: list[str] = []
        self.refusal = ""
        self.server = QuestionServer(self._refusal, self.exited.append)
        self.server.answers["twice"] = lambda worker, number: [worker, 2 * number]

    def _refusal(self, worker: str, pid: int) -> str:
        self.admitted.append((worker, pid))
        return self.refusal

    async def link(self, worker: str) -> SupervisorLink:
        """A worker's end: it says hello before it has a loop."""
        return await asyncio.to_thread(SupervisorLink, self.path, worker)

    async def until(self, done: Callable[[], bool]) -> None:
        """Poll."""
        async with asyncio.timeout(SECONDS):
            while not done():
                await asyncio.sleep(0.001)


def in_office(folder: Path, work: Callable[[Office], Awaitable[None]]) -> None:
    """Run ``work`` beside a server that listens."""

    async def run() -> None:
        office = Office(folder / "s.sock")
        await office.server.serve(office.path)
        try:
            await work(office)
        finally:
            office.server.close()

    asyncio.run(run())


def test_many_questions_at_once(tmp_path: Path) -> None:
    """Each has its own answer; the server knows which process asks, and when that has exited."""

    async def work(office: Office) -> None:
        link = await office.link("w1")
        assert await asyncio.gather(*(link.ask("twice", n) for n in range(2000))) == [
            ["w1", 2 * n] for n in range(2000)
        ]
        assert office.admitted == [("w1", os.getpid())]
        assert office.server.connected == {"w1"}
        link.close()
        await office.until(lambda: office.exited == ["w1"])
        assert not office.server.connected

    in_office(tmp_path, work)


def test_more_than_a_socket_holds(tmp_path: Path) -> None:
    """A question of some megabytes waits for its reader without blocking anyone."""

    async def work(office: Office) -> None:
        link = await office.link("w1")
        office.server.answers["back"] = lambda worker, text: text
        texts = [str(n) * 500_000 for n in range(8)]
        assert await asyncio.gather(*(link.ask("back", text) for text in texts)) == texts
        link.close()

    in_office(tmp_path, work)


def test_a_worker_that_is_not_wanted(tmp_path: Path) -> None:
    """It hears why, in a sentence; so does a second of one name."""

    async def work(office: Office) -> None:
        link = await office.link("w1")
        with pytest.raises(OperatorError, match="w1 is at work already"):
            await office.link("w1")
        office.refusal = "it is none of ours"
        with pytest.raises(OperatorError, match="refuses this worker: it is none of ours"):
            await office.link("w9")
        assert await link.ask("twice", 4) == ["w1", 8]
        link.close()

    in_office(tmp_path, work)


def test_without_a_supervisor(tmp_path: Path) -> None:
    """One sentence; one that hangs up as well."""
    with pytest.raises(OperatorError, match="the same scrapy fleet continues"):
        SupervisorLink(tmp_path / "s.sock", "w1")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "t.sock"))
        server.listen()
        hanging_up = threading.Thread(target=_hang_up, args=[server])
        hanging_up.start()
        with pytest.raises(OperatorError, match="does not answer"):
            SupervisorLink(tmp_path / "t.sock", "w1")
        hanging_up.join()


def test_a_supervisor_that_has_just_died(tmp_path: Path) -> None:
    """A question that finds a broken pipe, before the loop has seen the end, has the same answer as later ones."""

    async def work(office: Office) -> None:
        link = await office.link("w1")
        assert await link.ask("twice", 1) == ["w1", 2]
        link._socket.shutdown(socket.SHUT_WR)
        for number in range(2):
            with pytest.raises(StorageError, match="the supervisor has exited"):
                await link.ask("twice", number)

    in_office(tmp_path, work)


def test_a_supervisor_that_dies(tmp_path: Path) -> None:
    """Who waits for an answer hears of it, and who asks later; the worker knows."""

    async def work(office: Office) -> None:
        link = await office.link("w1")
        assert await link.ask("twice", 1) == ["w1", 2]
        assert link.broken == ""
        office.server.answers["die"] = _abort
        with pytest.raises(StorageError, match="the supervisor has exited"):
            await link.ask("die")
        assert link.broken
        with pytest.raises(StorageError):
            await link.ask("twice", 1)
        link.close()

    in_office(tmp_path, work)


def _hang_up(server: socket.socket) -> None:
    server.accept()[0].close()


def _abort(worker: str) -> None:
    raise ValueError("a mistake")


@pytest.mark.parametrize("line", [b"no json\n", json_line([1, "twice", 4]), json_line([1, "hello"])])
def test_a_stranger_is_hung_up_on(tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Others go on; processes of other users cannot connect."""

    async def work(office: Office) -> None:
        link = await office.link("w1")
        assert stat.S_IMODE(office.path.stat().st_mode) == 0o600
        reader, writer = await asyncio.open_unix_connection(sock=connected(office.path))
        writer.write(line)
        assert await reader.read() == b""
        writer.close()
        assert await link.ask("twice", 4) == ["w1", 8]
        link.close()

    in_office(tmp_path, work)
    assert "cannot be answered" in caplog.text


def test_lines_come_in_pieces() -> None:
    """Whatever a read returns."""
    lines, found = Lines(), []
    for byte in json_line([1, "a\nb"]) + json_line([2, None]):
        found += lines(bytes([byte]))
    assert found == [[1, "a\nb"], [2, None]]
