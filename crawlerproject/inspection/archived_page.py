"""A page as it lies in the archive, read again as the spider read it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.fetch.decoding import decode
from crawlerproject.reports.warc_check import walk_file
from crawlerproject.rules.archive.http_heads import header_pairs
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.page.encoding import decode as decode_text
from crawlerproject.rules.page.page import MAX_HTML_BYTES, PageFacts, read_html
from crawlerproject.rules.url.urls import Base
from crawlerproject.stores.archive.warc_reader import notes_after
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX


class ArchivedPage:
    """``attempt``: a line of the request log that names a capture. ``facts`` is None when there is no HTML of it."""

    def __init__(self, warc_folder: Path, attempt: dict[str, Any], token: str) -> None:
        self.url: str = attempt["url"]
        self.facts: PageFacts | None = None
        self.body = b""
        member = _response(warc_folder, attempt)
        if member is None or attempt["status"] != 200:
            return
        headers = [(name.lower(), value) for name, value in header_pairs(member.head)]
        coding = ",".join(value for name, value in headers if name == "content-encoding")
        self.body = decode(member.payload, coding.encode("latin-1"), MAX_HTML_BYTES).body
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
        return key not in {link.key for link in facts.links} and key in set(self._nofollow_keys())

    def _nofollow_keys(self) -> Iterator[bytes]:
        text, encoding = decode_text(self.body[:MAX_HTML_BYTES], self._kind)
        base = Base(self.facts.base if self.facts else self.url, encoding)
        for node in LexborHTMLParser(text.encode()).css('[href][rel~="nofollow" i]'):
            address = base.join(node.attributes.get("href") or "")
            if address is not None:
                yield address.key


def archived_notes(warc_folder: Path, attempt: dict[str, Any]) -> dict[str, str]:
    """What the metadata record of the capture or render that a log line names says; none when it is not there."""
    path = _file(warc_folder, attempt)
    return {} if path is None else notes_after(path, attempt["offset"] + attempt["length"])


def _response(folder: Path, attempt: dict[str, Any]) -> Member | None:
    """The response record that the log line points to; None when its file is not there or not good."""
    path = _file(folder, attempt)
    member = None if path is None else next(walk_file(path, attempt["offset"]), None)
    return member if isinstance(member, Member) else None


def _file(folder: Path, attempt: dict[str, Any]) -> Path | None:
    """The WARC file that a log line names, if it is there."""
    names = (attempt["warc"], f"{attempt['warc']}{OPEN_SUFFIX}") if attempt["warc"] else ()
    return next((folder / name for name in names if (folder / name).exists()), None)
