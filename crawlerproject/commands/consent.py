"""``scrapy consent``: what the sites of a crawl say of the use of their pages, host by host."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.decoding import decode
from crawlerproject.operator_command import Bytes, InspectCommand, named_archives, option
from crawlerproject.rules.archive.http_messages import content_encoding
from crawlerproject.rules.archive.warc_members import Flaw
from crawlerproject.rules.consent.verdict import PURPOSES, Judgement, Note, Verdict, judge
from crawlerproject.rules.printable import counted
from crawlerproject.rules.robots.policy import KEPT_BYTES, parse_robots
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.archive.warc_reader import members, note_lines
from crawlerproject.terminal import say, say_json

_ROBOTS_TXT = "/robots.txt"
_OF_ROBOTS = "P"  # the letter of a discovery path
_OK = b" 200 "  # in a status line


_ORDER = (Verdict.RESERVED, Verdict.ALLOWED, Verdict.UNKNOWN)


@dataclass(slots=True)
class _Site:
    """What is known of one host; ``words`` are those that decided first, by verdict."""

    pages: Counter[Verdict] = field(default_factory=Counter)
    words: dict[Verdict, Judgement] = field(default_factory=dict)

    def take(self, judged: Judgement, pages: int) -> None:
        self.pages[judged.verdict] += pages
        self.words.setdefault(judged.verdict, judged)

    @property
    def verdict(self) -> Verdict:
        """The strictest of its pages and of robots.txt."""
        return next((one for one in _ORDER if one in self.words), Verdict.UNKNOWN)


class Command(InspectCommand):
    """Reads the archive alone, so that it judges for any purpose, also what was crawled for another."""

    arguments = "[FOLDER] [--purpose PURPOSE] [--json]"
    summary = "List hosts by what their words on the use of pages come to"

    example = "scrapy consent crawls/web --purpose ai-train"

    options = (option("--purpose", choices=PURPOSES, default="", help="judge for this one (default: PURPOSE)"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1:
            raise OperatorError(f"Give one folder or none, for example: {self.example}")
        archives, purpose = named_archives(args, self.settings), opts.purpose or str(self.settings["PURPOSE"])
        sites, notes, token = dict[str, _Site](), dict[str, list[Note]](), str(self.settings["CRAWLER_NAME"])
        warcs = [*archives.closed_warcs(), *archives.open_warcs()]
        with Bytes("Reading", warcs) as progress:
            for warc in warcs:
                for url, judged, pages in _judged(warc, purpose, token, notes, progress.advance):
                    sites.setdefault(host_key(url), _Site()).take(judged, pages)
        rows = [_row(name, site) for name, site in sorted(sites.items())]
        rows.sort(key=lambda row: _ORDER.index(row["verdict"]))
        if opts.json:
            say_json({"purpose": purpose, "hosts": rows})
            return
        for row in rows:
            counts = ", ".join(f"{row[str(verdict)]:,} {verdict}" for verdict in Verdict if row[str(verdict)])
            words = f"  {row['source']}: {row['words']}" if row["source"] else ""
            say(f"{row['verdict']:<9} {row['host']}  {counts or 'no page'}{words}")
        say(f"{counted(len(rows), 'host')}, judged for {purpose}")


def _row(name: str, site: _Site) -> dict[str, Any]:
    decided = site.words.get(site.verdict, Judgement(Verdict.UNKNOWN))
    counts = {str(verdict): site.pages[verdict] for verdict in Verdict}
    return {"host": name, "verdict": str(site.verdict), **counts, "source": decided.source, "words": decided.words}


def _judged(
    warc: Path, purpose: str, token: str, notes: dict[str, list[Note]], progress: Any
) -> Iterator[tuple[str, Judgement, int]]:
    """URL, verdict and whether it is a page's (1) or that of a robots.txt or the like (0), up to the file's first flaw.

    ``notes``: by payload, the notes of the robots.txt files so far.
    """
    for member in members(warc, progress=progress):
        if isinstance(member, Flaw):
            return
        if member.kind == "metadata":
            lines = note_lines(member)
            known = dict(lines)
            hops = known.get("hopsFromSeed", "").rstrip("R")
            if hops != _OF_ROBOTS:  # a page, or what stands beside robots.txt: its words are in its lines
                beside = hops.endswith(_OF_ROBOTS)
                via = known.get("via", "") if beside else ""  # whose licence it is that another host has
                url = via if via.endswith(_ROBOTS_TXT) else member.url
                yield url, judge(lines, purpose), int(not beside)
        elif member.url.endswith(_ROBOTS_TXT) and member.head[:13].endswith(_OK):
            digest = member.field("warc-payload-digest")
            if member.kind == "response":
                body = decode(member.body, content_encoding(member.head), KEPT_BYTES).readable
                notes[digest] = [("ai-use-robots-txt", words) for words in parse_robots(body, token).content_signals]
            yield member.url, judge(notes.get(digest, ()), purpose), 0  # many hosts have the same: a revisit
