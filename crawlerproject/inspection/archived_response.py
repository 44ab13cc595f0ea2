"""A capture as the Scrapy response that the spider saw: the body decoded, the headers as they were received."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.decoding import decode
from crawlerproject.fetch.http1 import read_headers
from crawlerproject.rules.archive.http_messages import EDITED_PREFIX, Wire, header_pairs
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED
from crawlerproject.rules.page.body import decode as decode_text
from crawlerproject.rules.page.page import MAX_HTML_BYTES, PageFacts, read_html
from crawlerproject.rules.url.urls import Base
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture, nearest
from crawlerproject.stores.archive.warc_reader import date_of, member_at, members, notes_after, status_of
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, CrawlDir
from crawlerproject.stores.logs.log_query import attempts

# Scrapy's classes are imported where a response is made: they bring Twisted, and most commands make none.
if TYPE_CHECKING:
    from scrapy.http import Response

_CODING = b"Content-Encoding"
# What a capture may become when it is unpacked: more than any crawl keeps of a body.
_MAX_BODY_BYTES = 1 << 30


class Archived(NamedTuple):
    """A page as it was captured."""

    response: Response
    date: str  # WARC-Date of what the response is made of
    rendered: bool  # it is what a browser made of the page
    since: str = ""  # WARC-Date of the answer that confirmed the page unchanged; "" when none did


def archived_wire(member: Member, original: Member | None = None) -> Wire:
    """What crossed the wire, as far as a response or revisit tells; the body is that of its ``original``, if any."""
    started_at = date_of(member)
    return Wire(
        head_bytes=member.head,
        body=(original or member).body,
        status=status_of(member.head),
        ip=member.field("warc-ip-address"),
        protocols=tuple(member.all("warc-protocol")) or ("http/1.1",),
        cipher=member.field("warc-cipher-suite") or None,
        started_at=started_at,
        ended_at=started_at,
        truncated=(original or member).field("warc-truncated") or None,
    )


def archived_response(url: str, wire: Wire, max_bytes: int, original: Member | None = None) -> Response:
    """The response of ``wire``, whose body has the Content-Encoding of its ``original``, if any."""
    from crawlerproject.fetch.download_handler import response_of

    return response_of(url, wire, _headers(wire.head_bytes, original), max_bytes)


def archived_body(captures: Captures, chosen: IndexedCapture) -> bytes:
    """That of ``seen``, of a page that no browser was sent. Raises as ``archived``."""
    member, original, _ = _answered(captures, chosen)
    wire = archived_wire(member, original)
    coding = b",".join(_headers(wire.head_bytes, original).get(_CODING, ()))
    return decode(wire.body, coding, _MAX_BODY_BYTES).body


def archived(folders: Sequence[CrawlDir], url: str, at: str = "") -> Archived | None:
    """What a crawl's spider saw of a page last, or nearest to ``at`` (UTC digits from the year on); None: nothing.

    The crawl's archives are in ``folders``. Where a browser was sent the page, that is what the browser made of it.
    Raises OperatorError when ``url`` or ``at`` cannot be read, and when the archive lacks what its index names.
    """
    captures = Captures(folders)
    found = captures.of_url(url)
    found = [capture for capture in found if capture.row.url == url] or found
    if not found:
        return None
    chosen = nearest(found, at) if at else found[-1]
    return seen(captures, chosen, _render(folders, chosen, found))


def seen(captures: Captures, chosen: IndexedCapture, render: Member | None = None) -> Archived:
    """What the spider saw of a capture; ``render`` is what a browser made of it. Raises as ``archived``."""
    if render is not None:
        shown = rendered_response(chosen.row.url, render)
        return Archived(_asked(shown, render), render.field("warc-date"), True)
    member, original, since = _answered(captures, chosen)
    shown = archived_response(chosen.row.url, archived_wire(member, original), _MAX_BODY_BYTES, original)
    return Archived(_asked(shown, member), member.field("warc-date"), False, since)


def _answered(captures: Captures, chosen: IndexedCapture) -> tuple[Member, Member | None, str]:
    """The record with the head of a capture, the one with its body where that is another, and Archived's ``since``."""
    member = captures.record(chosen)
    if member.kind != "revisit":
        return member, None, ""
    if (found := captures.original(member)) is None:
        raise OperatorError(f"{member.url} was not new, and the capture that has its body is not in this archive.")
    original = captures.record(found)
    if member.field("warc-profile") == NOT_MODIFIED:
        return original, None, member.field("warc-date")
    return member, original, ""


def _headers(head: bytes, original: Member | None) -> dict[bytes, list[bytes]]:
    """Those of a stored head, with the Content-Encoding of what has the body."""
    headers = _received(read_headers(head))
    if original is not None:
        headers.pop(_CODING, None)
        if codings := read_headers(original.head).get(_CODING):
            headers[_CODING] = codings
    return headers


def _received(headers: dict[bytes, list[bytes]]) -> dict[bytes, list[bytes]]:
    """The headers of a stored head as they came: what was marked untrue, without the length put in its place."""
    if not any(name.startswith(EDITED_PREFIX) for name in headers):
        return headers
    if next(reversed(headers)) == b"Content-Length":
        headers.popitem()
    received: dict[bytes, list[bytes]] = {}
    for name, values in headers.items():
        received.setdefault(name.removeprefix(EDITED_PREFIX), []).extend(values)
    return received


def _asked(response: Response, member: Member) -> Response:
    """With the request that a spider would find."""
    from scrapy import Request

    response.request = Request(response.url, meta={"archived": member.field("warc-date")})
    return response


def _render(folders: Sequence[CrawlDir], chosen: IndexedCapture, all_of_them: list[IndexedCapture]) -> Member | None:
    """What a browser made of a capture, before there was another; the request log knows where that is."""
    later = [found.row.timestamp for found in all_of_them if found.row.timestamp > chosen.row.timestamp]
    since, until = (  # as the request log writes a moment
        datetime.strptime(stamp, "%Y%m%d%H%M%S").isoformat() if stamp else ""
        for stamp in (chosen.row.timestamp, min(later, default=""))
    )
    for line in attempts([folder.log for folder in folders], url=chosen.row.url, since=since, until=until):
        if line["rendered"] and line["warc"]:
            return render_record(folders, line)
    return None


def render_record(folders: Sequence[CrawlDir], line: dict[str, Any]) -> Member | None:
    """The record of a render that a line of the request log names; None when it is not there."""
    for path in (folder.warc / f"{line['warc']}{suffix}" for folder in folders for suffix in ("", OPEN_SUFFIX)):
        if path.exists():
            member = member_at(path, line["offset"], line["length"])
            return member if isinstance(member, Member) and member.kind == "conversion" else None
    return None


def rendered_response(url: str, render: Member) -> Response:
    """The response of a page as the browser showed it; ``render`` is its record."""
    from scrapy.http import HtmlResponse

    headers = {"Content-Type": "text/html; charset=utf-8"}
    return HtmlResponse(url, headers=headers, body=render.block, encoding="utf-8", flags=["rendered"])


class ArchivedPage:
    """``attempt``: a line of the request log that names a capture. ``facts`` is None when there is no HTML of it."""

    def __init__(self, warc_folder: Path, attempt: dict[str, Any], token: str) -> None:
        self.url: str = attempt["url"]
        self.facts: PageFacts | None = None
        self.body = b""
        path = _file(warc_folder, attempt)
        member = None if path is None else next(members(path, attempt["offset"]), None)
        if not isinstance(member, Member) or attempt["status"] != 200:  # its file is not there, or not good
            return
        headers = [(name.lower(), value) for name, value in header_pairs(member.head)]
        coding = ",".join(value for name, value in headers if name == "content-encoding")
        self.body = decode(member.payload, coding.encode("latin-1"), MAX_HTML_BYTES).readable
        self._kind = next((value for name, value in headers if name == "content-type"), None)
        robots = [value for name, value in headers if name == "x-robots-tag"]
        self.facts = read_html(self.body, url=self.url, content_type=self._kind, x_robots=robots, token=token)

    def asks_not_to_follow(self, key: bytes) -> bool:
        """Whether the page, or its every link to the address of this key, asks not to follow it."""
        facts = self.facts
        if facts is None:
            return False
        if facts.nofollow:
            return True
        if key in {link.key for link in facts.links}:
            return False
        text, encoding = decode_text(self.body[:MAX_HTML_BYTES], self._kind)
        base = Base(facts.base, encoding)
        nodes = LexborHTMLParser(text.encode()).css('[href][rel~="nofollow" i]')
        targets = (base.join(node.attributes.get("href") or "") for node in nodes)
        return any(target is not None and target.key == key for target in targets)


def archived_notes(warc_folder: Path, attempt: dict[str, Any]) -> dict[str, str]:
    """What the metadata record of the capture or render that a log line names says; none when it is not there."""
    path = _file(warc_folder, attempt)
    return {} if path is None else notes_after(path, attempt["offset"] + attempt["length"])


def _file(folder: Path, attempt: dict[str, Any]) -> Path | None:
    """The WARC file that a log line names, if it is there."""
    names = (attempt["warc"], f"{attempt['warc']}{OPEN_SUFFIX}") if attempt["warc"] else ()
    return next((folder / name for name in names if (folder / name).exists()), None)
