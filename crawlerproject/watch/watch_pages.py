"""The page of a running crawl and the JSON that it reads: GET alone, for this machine's own names alone.

Questions that take the store or the log, answered by another process: a crawl's event loop has no time for them.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any, NamedTuple

import orjson
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawlerproject.rules.url.urls import host_name
from crawlerproject.terminal import json_text

# Answers a question a line; it is of the room of the commands, whose answers these are.
_PROGRAM = "crawlerproject.commands.looking_process"
_NICENESS = 10  # the crawl comes first
_MOST_WAITING = 8  # ours: people, not programs, ask
_MOST_SECONDS = 30.0  # for one answer, the process's start and a long log included
_IDLE_SECONDS = 60.0  # then the process ends: it takes as much memory as any command of Scrapy's
_MOST_ANSWER_BYTES = 4 * 1024 * 1024


class NoAnswer(Exception):
    """Why not, in one sentence."""


class Questions:
    """One process at a time, started when something is asked; questions wait for each other."""

    def __init__(self, settings: Mapping[str, Any], *, idle_seconds: float = _IDLE_SECONDS) -> None:
        """``settings``: those of the crawl, as it was started; ``idle_seconds``: how long the process outlives one."""
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._one = asyncio.Lock()
        self.waiting = 0  # questions that have no answer yet
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: asyncio.StreamReader | None = None
        self._asked: asyncio.StreamWriter | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(self, kind: str, text: str) -> dict[str, Any]:
        """The answer to ``why`` or ``host``. Raises NoAnswer."""
        if self._closed:
            raise NoAnswer("The crawl ends.")
        if self.waiting >= _MOST_WAITING:
            raise NoAnswer("Too many questions at once; ask again in a moment.")
        self.waiting += 1
        try:
            async with asyncio.timeout(_MOST_SECONDS), self._one:
                if self._closed:
                    raise EOFError
                return await self._asked_one(kind, text)
        except TimeoutError:
            self._end()
            raise NoAnswer(f"No answer within {_MOST_SECONDS:.0f} s; scrapy {kind} has more time.") from None
        except (OSError, EOFError, ValueError):
            self._end()
            why = "The crawl ends." if self._closed else "The process that answers has ended; ask again."
            raise NoAnswer(why) from None
        finally:
            self.waiting -= 1

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None

    def close(self) -> None:
        """No more."""
        self._closed = True
        self._end()

    async def _asked_one(self, kind: str, text: str) -> dict[str, Any]:
        if self._idle is not None:
            self._idle.cancel()
        if self._asked is None:
            await self._start()
        assert self._asked is not None
        assert self._answers is not None
        try:
            self._asked.write(orjson.dumps({"kind": kind, "text": text}) + b"\n")
            await self._asked.drain()
            answer = await self._answers.readline()
            if not answer:
                raise EOFError
        except BaseException:
            self._end()  # it may be in the middle of an answer
            raise
        self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._end)
        found: dict[str, Any] = orjson.loads(answer)
        return found

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        paths = os.pathsep.join(entry or os.getcwd() for entry in sys.path)  # the project may be an egg of scrapyd's
        with theirs:
            # Not asyncio's own: under Twisted's reactor the end of its processes is not always seen.
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(_NICENESS)],
                env={**os.environ, "PYTHONPATH": paths},
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the crawl
            )
        ours.setblocking(False)
        self._answers, self._asked = await asyncio.open_unix_connection(sock=ours, limit=_MOST_ANSWER_BYTES)
        # Over the socket, not on the command line, which everyone on the machine can read: a setting may be a password.
        self._asked.write(orjson.dumps(self._settings, default=str) + b"\n")

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._asked is not None:
            self._asked.close()
        if self._process is not None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):  # Popen collects it later
                self._process.wait(0.02)
        self._process = self._answers = self._asked = self._idle = None


_LINKS = '<link rel="stylesheet" href="watch.css">\n<script src="watch.js" defer></script>\n'
# Trusted Types: the page's script cannot turn a string into markup, whatever the string is.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Who asks, as browsers say it (Fetch Metadata): another site's page may link to ours, and ask nothing itself.
_OWN_PAGES = ("", "none", "same-origin")
_MOST_TEXT = 4_000
"""Letters of a question; SCOPE_MAX_URL_LENGTH is 2,000."""

PageBuilder = Callable[[Mapping[str, str]], bytes]
Question = Callable[[Mapping[str, str]], Awaitable[Any]]


class Served(NamedTuple):
    """What is at one path: an answer at hand, or one that is waited for, as JSON."""

    kind: str
    answer: PageBuilder | None = None
    question: Question | None = None


class Unfit(Exception):
    """A question that has no answer, in one sentence."""


def static() -> dict[str, Served]:
    """The page's own files, read once."""
    room, shared = files("crawlerproject.watch"), files("crawlerproject.reports")
    style = (shared / "look.css").read_bytes() + (room / "watch.css").read_bytes()
    head = (shared / "head.html").read_text().replace("{{ title }}", "Crawl").replace("{{ head }}", _LINKS)
    page, script = head.encode() + (room / "watch.html").read_bytes(), (room / "watch.js").read_bytes()
    return {
        "": Served("text/html; charset=utf-8", answer=lambda _: page),
        "watch.js": Served("text/javascript; charset=utf-8", answer=lambda _: script),
        "watch.css": Served("text/css; charset=utf-8", answer=lambda _: style),
    }


def json_page(facts: Callable[[Mapping[str, str]], Any]) -> Served:
    """Facts at hand."""
    return Served("application/json", answer=lambda asked: json_text(facts(asked)).encode())


def json_question(question: Question) -> Served:
    """Facts that are waited for."""
    return Served("application/json", question=question)


def one(asked: Mapping[str, str], name: str) -> str:
    """One parameter; Unfit when it is missing or too long."""
    text = asked.get(name, "").strip()
    if not text or len(text) > _MOST_TEXT:
        raise Unfit(f"Ask with ?{name}=…, in at most {_MOST_TEXT:,} letters.")
    return text


class Bodiless(Request):
    """A request whose body is not read: any page that a browser shows could send one, to fill a disk."""

    def gotLength(self, length: int | None) -> None:
        """Before the body; None: its length is not given."""
        super().gotLength(0)  # type: ignore[no-untyped-call]  # Twisted's
        channel: Any = self.channel
        if length != 0 and channel is not None:
            channel.write(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            channel.loseConnection()

    def handleContentChunk(self, data: bytes) -> None:
        """What was on its way is not kept."""


class Pages(Resource):
    """GET and HEAD of a few paths; 403, 404 or 400 for anything else."""

    isLeaf = True

    def __init__(self, served: Mapping[str, Served], names: frozenset[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        self._served = served
        self._names = names
        self._tasks: set[asyncio.Task[None]] = set()

    def render_GET(self, request: Any) -> bytes | int:
        """One answer."""
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        request.setHeader("Content-Type", "text/plain; charset=utf-8")
        path = request.path.removeprefix(b"/").decode("ascii", "replace")
        if host_name((request.getHeader("host") or "").lower()) not in self._names:
            return _refused(request, 403, "Ask for this machine by its own address.")
        if path and (request.getHeader("sec-fetch-site") or "") not in _OWN_PAGES:
            return _refused(request, 403, "Pages elsewhere are not answered.")
        served = self._served.get(path)
        if served is None:
            return _refused(request, 404, f"There are {', '.join(f'/{name}' for name in self._served)}.")
        asked = {name.decode("latin-1"): values[-1].decode("utf-8", "replace") for name, values in request.args.items()}
        try:
            if served.answer is not None:
                body = served.answer(asked)
                request.setHeader("Content-Type", served.kind)
                return body
            assert served.question is not None
            waited = served.question(asked)
        except Unfit as unfit:
            return _refused(request, 400, str(unfit))
        task = asyncio.get_running_loop().create_task(_finish(request, served.kind, waited))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        request.notifyFinish().addErrback(lambda _: task.cancel())  # the client has hung up
        return NOT_DONE_YET


async def _finish(request: Any, kind: str, waited: Awaitable[Any]) -> None:
    try:
        found = await waited
    except NoAnswer as none:
        request.setResponseCode(503)
        found = {"error": str(none)}
    request.setHeader("Content-Type", kind)
    request.write(json_text(found).encode())
    request.finish()


def _refused(request: Any, status: int, why: str) -> bytes:
    request.setResponseCode(status)
    return f"{why}\n".encode()
