"""Which pages of an archive their sites now reserve from a purpose: by the newest words on each, wherever they stand.

A page's words are in the metadata record of its newest visit, also of one that kept nothing. Those of robots.txt, of
tdmrep.json and of licences may be newer than that: of each host the newest ones count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from crawlerproject.fetch.decoding import decode
from crawlerproject.rules.archive.http_messages import content_encoding
from crawlerproject.rules.archive.warc_members import Flaw, Member
from crawlerproject.rules.consent.terms import MAX_BYTES, TDMREP, Document, Rule, Terms, documents_of, read_document
from crawlerproject.rules.consent.verdict import Judgement, Note, Source, Verdict, judge
from crawlerproject.rules.rendering.thin_pages import archived_robots_wall
from crawlerproject.rules.robots.policy import (
    ALLOW_ALL,
    KEPT_BYTES,
    RobotsRules,
    RobotsVerdict,
    parse_robots,
    robots_verdict,
)
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.archive.warc_reader import Progress, members, note_lines

_ROBOTS_TXT = "/robots.txt"
_CONTENT = frozenset({"response", "revisit", "resource", "conversion"})


class _Page(NamedTuple):
    date: str  # of its newest words, as WARC-Date
    notes: tuple[Note, ...]


class NewestWords:
    """What the sites of an archive last declared of each page that it holds."""

    def __init__(self, token: str) -> None:
        """``token``: the crawler's name in robots.txt."""
        self._token = token
        self._pages: dict[str, _Page] = {}
        self._held: set[str] = set()  # of which there is content
        self._rules: dict[str, tuple[str, RobotsRules | None]] = {}  # by origin, with its date
        self._by_payload: dict[str, RobotsRules | None] = {}
        self._licenses: set[str] = set()  # that files of robots.txt so far name: they are asked for after these
        self._documents: dict[str, tuple[str, int, bytes]] = {}  # by URL: date, status and body
        self._read: dict[tuple[str, str], Sequence[Rule]] = {}  # by URL and host, of these
        self._bodies: dict[str, bytes] = {}  # of documents, by payload

    def read(self, warc: Path, progress: Progress | None = None) -> None:
        """Take in a WARC file, up to its first flaw."""
        for member in members(warc, progress=progress):
            if isinstance(member, Flaw):
                return
            url, date = member.url, member.field("warc-date")
            if member.kind == "metadata":
                if url not in self._pages or date >= self._pages[url].date:
                    written = [note for note in note_lines(member) if note[0] in tuple(Source)]
                    self._pages[url] = _Page(date, tuple(written))
            elif member.kind in _CONTENT and _origin(url) + _ROBOTS_TXT == url:
                self._take_robots(_origin(url), date, member)
            elif member.kind in _CONTENT and (_origin(url) + TDMREP == url or url in self._licenses):
                self._take_document(url, date, member)
            elif member.kind in _CONTENT:
                self._held.add(url)

    def reserved(self, purpose: str) -> Iterator[tuple[str, Judgement]]:
        """Each page that is held and reserved, with what decided."""
        for url in sorted(self._held & self._pages.keys()):
            notes = self._pages[url].notes
            if (found := self._rules.get(_origin(url))) is not None:
                words = found[1].words_for(url) if found[1] is not None else ()
                others = [note for note in notes if note[0] != Source.ROBOTS_TXT or note[1].startswith("license:")]
                notes = (*others, *((str(Source.ROBOTS_TXT), each) for each in words))
                notes = self._with_documents(url, found[1] or ALLOW_ALL, notes)
            judged = judge(notes, purpose)
            if judged.verdict is Verdict.RESERVED:
                yield url, judged

    def _with_documents(self, url: str, rules: RobotsRules, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """With the newest words of what stands beside robots.txt, as far as that was asked for."""
        documents = documents_of(_origin(url), rules.licenses, rules.allowed)
        host = host_key(url)
        known = [Document(each.url, self._said(each.url, host)) for each in documents if each.url in self._documents]
        if not known:
            return notes
        others = (note for note in notes if note[0] not in (Source.TDMREP, Source.LICENSE))
        return (*others, *rules.with_terms(Terms(known)).terms_for(url))

    def _said(self, document: str, host: str) -> Sequence[Rule]:
        """The rules of a document for a host: many name the same licence."""
        _, status, body = self._documents[document]
        if (document, host) not in self._read:
            self._read[document, host] = read_document(document, status, body, host)
        return self._read[document, host]

    def _take_document(self, url: str, date: str, member: Member) -> None:
        """Take a document beside robots.txt: the newest that is an answer counts."""
        status, digest = member.head[9:12], member.field("warc-payload-digest")
        if not status.isdigit() or robots_verdict(int(status)) not in (RobotsVerdict.PARSE, RobotsVerdict.ALLOW):
            return
        if member.kind == "response":
            self._bodies[digest] = decode(member.body, content_encoding(member.head), MAX_BYTES + 1).readable
        if url not in self._documents or date >= self._documents[url][0]:
            self._documents[url] = date, int(status), self._bodies.get(digest, b"")
            self._read.clear()

    def _take_robots(self, origin: str, date: str, member: Member) -> None:
        """What is not an answer with rules, or with none, leaves the older one in force."""
        status = member.head[9:12]
        verdict = robots_verdict(int(status)) if status.isdigit() else None
        if origin in self._rules and date < self._rules[origin][0]:
            return
        body = decode(member.body, content_encoding(member.head), KEPT_BYTES).readable
        if archived_robots_wall(member.head, body, member.url):
            return
        if verdict is RobotsVerdict.ALLOW:
            self._rules[origin] = date, None
        elif verdict is RobotsVerdict.PARSE:
            digest = member.field("warc-payload-digest")
            if member.kind == "response":
                rules = parse_robots(body, self._token)
                self._by_payload[digest] = rules if rules.content_signals or rules.licenses else None
            if digest in self._by_payload:
                self._rules[origin] = date, (found := self._by_payload[digest])
                if found is not None and found.licenses:
                    self._licenses |= {each.url for each in documents_of(origin, found.licenses, found.allowed)}


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])
