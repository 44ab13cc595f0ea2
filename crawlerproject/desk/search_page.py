"""The page of ``scrapy search --serve``: a box, and the answers as plain HTML, for this machine.

It shows pages that strangers wrote, so it has no script at all, and takes no orders.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from crawlerproject.desk.desk_views import templates
from crawlerproject.desk.door import Answer, Asked, refusal
from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from crawlerproject.batch.fulltext import Answers

Find = Callable[[str, int, str, str], "Answers"]
"""Of words, how many at most, a host and a language ("" for all). OperatorError: in a sentence, why not."""

_STEP, _MOST = 10, 200
_MOST_LETTERS = 500  # of a query (ours)
_NOT_DIGITS = re.compile(r"[^0-9]")
_COLLECTION = "crawl"  # scrapy replay's


class Row(NamedTuple):
    """One answer as it is shown."""

    title: str
    url: str
    host: str
    parts: list[str]  # of the snippet; every second one is marked
    day: str
    language: str
    copy: str
    alike: int
    more: str


class SearchPage:
    """Answers what the door lets in."""

    def __init__(self, find: Find, replay_port: int) -> None:
        self._find = find
        self._replay_port = replay_port
        room = [files("crawlerproject.reports") / "look.css", files("crawlerproject.desk") / "desk.css"]
        self._style = b"".join(file.read_bytes() for file in room)

    def answer(self, asked: Asked) -> Answer:
        """The page, or its style."""
        if asked.form is not None:
            return refusal(405, "Nothing is ordered here.")
        if asked.path == ("desk.css",):
            return Answer(self._style, "text/css; charset=utf-8")
        if asked.path != ("",):
            return refusal(404, "There is no such page.")
        given = {
            name: " ".join(asked.query.get(name, "").split())[:_MOST_LETTERS] for name in ("q", "host", "language")
        }
        wanted = asked.query.get("n", "")
        limit = min(_MOST, int(wanted)) if wanted.isascii() and wanted.isdigit() and len(wanted) < 4 else _STEP
        limit = max(_STEP, limit)
        shown: dict[str, object] = {"message": "", "rows": [], "instead": "", "further": ""}
        status = 200
        if given["q"]:
            try:
                shown |= self._found(given, limit)
            except OperatorError as error:
                shown["message"], status = str(error), 400
        text = templates().get_template("search.html").render(replay_port=self._replay_port, **given, **shown)
        return Answer(text.encode("utf-8", "replace"), status=status)

    def _found(self, given: dict[str, str], limit: int) -> dict[str, object]:
        words, host, language = given["q"], given["host"], given["language"]
        found = self._find(words, limit, host, language)
        rows = [
            Row(
                hit.title or hit.url, hit.url, hit.host, hit.snippet.split("*"), hit.fetched[:10], hit.language,
                self._copy(hit.url, hit.fetched), hit.alike,
                f"?{urlencode({'q': words, 'host': hit.host, 'language': language})}" if hit.more else "",
            )
            for hit in found.hits if hit.url.startswith(("http://", "https://"))
        ]  # fmt: skip
        further = ""
        if len(found.hits) == limit < _MOST:
            further = f"?{urlencode({**given, 'n': limit + _STEP})}#a{limit + 1}"
        return {
            "rows": rows,
            "instead": found.words if found.words != words else "",
            "further": further,
            "message": "" if rows else "Nothing found.",
        }

    def _copy(self, url: str, fetched: str) -> str:
        """Where ``scrapy replay`` shows it."""
        moment = _NOT_DIGITS.sub("", fetched[:19]).ljust(14, "0")
        return f"http://127.0.0.1:{self._replay_port}/{_COLLECTION}/{moment}/{quote(url, safe='/:?&=%#+,;@!~*()[]$')}"
