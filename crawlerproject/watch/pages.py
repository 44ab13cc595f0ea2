"""The page of a running crawl and the JSON that it reads: GET alone, for this machine's own names alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawlerproject.rules.url.urls import host_name
from crawlerproject.terminal import json_text
from crawlerproject.watch.questions import NoAnswer

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
    room = files("crawlerproject.watch")
    look = (files("crawlerproject.reports") / "look.css").read_bytes()
    style = look + (room / "watch.css").read_bytes()
    page, script = ((room / name).read_bytes() for name in ("watch.html", "watch.js"))
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
