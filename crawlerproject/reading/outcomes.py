"""From a response and what was read in it to the result of its lease. The spider and a recovery share this."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from scrapy.http import Headers, Response

from crawlerproject.frontier.passage import Lease, document_of
from crawlerproject.items import LeaseResult, Note, Rendered
from crawlerproject.parse.links import (
    HOP_REDIRECT,
    MAX_REDIRECTS,
    navigated,
    redirected,
    redirected_enough,
    sitemaps_of_robots,
)
from crawlerproject.reading.jobs import ReadPage
from crawlerproject.reasons import RESERVED, Reason
from crawlerproject.request_meta import REDIRECTS, header, location
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.consent.terms import read_document, source_of
from crawlerproject.rules.consent.verdict import NOTE, Judgement, Source, Verdict, judge, reservation
from crawlerproject.rules.page.page import HEADERS, PageFacts, bounded, license_of_feed, page_robots, stated_by_site
from crawlerproject.rules.rendering.thin_pages import RenderNeed
from crawlerproject.rules.robots.policy import parse_robots, usable_body, wall_answered
from crawlerproject.rules.url.urls import Base


class Consent(NamedTuple):
    """What is done about a site's words on the use of its pages."""

    purpose: str  # of the crawl
    obeyed: bool  # else they are recorded
    site_words: Callable[[str], list[Note]]  # of a URL's site, before it is asked for
    license_words: Callable[[str, str], list[Note] | None] = lambda *_: None  # of a URL, in the licence at an address


RECORDED = Consent("archive", False, lambda _: [])
"""Of those who only read what a crawl has judged."""

# What rules/revisits/history.py reads of an answer's freshness.
_FRESHNESS_NAMES = {name.title().encode(): name for name in ("cache-control", "expires", "date", "age")}
_AI_USE_NAMES = {name.title().encode(): name for name in HEADERS}
_PRICES = {b"Crawler-Price": "crawler-price", b"Crawler-Charged": "crawler-charged", b"Payment-Required": "x402"}
_PAYMENT_REQUIRED = 402
# What a status says, whatever is read in the body later; any other is an error.
_REASONS = {
    **dict.fromkeys(range(400), Reason.FETCHED),
    **dict.fromkeys(REDIRECTS, Reason.REDIRECT),
    304: Reason.NOT_MODIFIED,
    _PAYMENT_REQUIRED: Reason.PAYMENT_REQUIRED,
    429: Reason.RATE_LIMITED,
    503: Reason.RATE_LIMITED,
}
_CONDITIONS = re.compile(rb"\r\nIf-(?:None-Match|Modified-Since):", re.IGNORECASE)  # RFC 9110 13.1
_FIELDS = {b"Retry-After": "retry_after", b"Etag": "etag", b"Last-Modified": "last_modified"}


def result_of(lease: Lease, response: Response, wire: Wire) -> LeaseResult:
    """What the status and the headers of a response say; its body is not read."""
    headers = response.headers
    reason = _REASONS.get(response.status, Reason.HTTP_ERROR)
    result = LeaseResult(lease.row, reason, wire.status or None, lease=lease, wire=wire)
    result.answered, result.body, result.error, result.ttfb_seconds = True, response.body, wire.flaw, wire.ttfb_seconds
    if wire.status == 200 and not wire.truncated:
        result.payload = wire.body
    if reason is Reason.NOT_MODIFIED and not _CONDITIONS.search(wire.request_bytes):
        result.reason, result.error = Reason.HTTP_ERROR, "304, which was not asked for: a cache that fails"
    result.mime = header(headers, b"Content-Type").partition(";")[0].strip().lower()
    there = dict.keys(headers)
    for name in _FIELDS.keys() & there:
        setattr(result, _FIELDS[name], header(headers, name))
    if not there.isdisjoint(_FRESHNESS_NAMES):
        result.freshness = dict(_those_of(headers, _FRESHNESS_NAMES))
    result.signature_asked = wire.signature_asked
    if wire.flaw:
        result.notes.append(("cut", wire.flaw))
    if wire.unverified:
        result.notes.append(("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"))
    return result


def _those_of(headers: Headers, names: dict[bytes, str]) -> list[Note]:
    """Of these headers, keyed as Scrapy keeps them, those that are there and not empty, in the order of ``names``."""
    there = names.keys() & dict.keys(headers)
    return [(names[name], text) for name in names if name in there and (text := header(headers, name))]


def result_of_hub(lease: Lease, response: Response, wire: Wire) -> LeaseResult:
    """A hub's answer to a request for a subscription; it verifies and pushes later, by requests of its own."""
    taken = 200 <= response.status < 300
    reason = Reason.SUBSCRIBED if taken else _REASONS.get(response.status, Reason.HTTP_ERROR)
    result = LeaseResult(lease.row, reason, wire.status or None, lease=lease, wire=wire, answered=True)
    result.retry_after, result.ttfb_seconds = header(response.headers, b"Retry-After"), wire.ttfb_seconds
    if not taken:
        result.error = response.body[:200].decode("latin-1").strip()
    return result


def goes_to_browser(lease: Lease, read: ReadPage, wanted: Callable[[str, str, RenderNeed], bool]) -> bool:
    """Whether a page that was read is rendered, too: once, no anti-bot wall, and within the budgets of the crawl.

    It goes back to the frontier marked "render" and meets the browser on a later lease. ``wanted`` is ``Renders``'.
    """
    if read.facts is None or read.challenge or lease.kind.is_render:
        return False
    return wanted(lease.row.url, lease.row.host, read.triage.verdict)


class Outcomes:
    """Makes the results of leases that got a response."""

    def __init__(self, token: str, *, sitemaps: bool, consent: Consent) -> None:
        """``sitemaps``: those that robots.txt files name are fetched."""
        self._token = token
        self._sitemaps = sitemaps
        self._consent = consent

    def fetched(self, lease: Lease, response: Response, wire: Wire, read: ReadPage, *, to_render: bool) -> LeaseResult:
        """The result of a fetch; ``to_render``: the page goes to the browser."""
        result, kind = result_of(lease, response, wire), lease.kind
        status = response.status
        if status in REDIRECTS:
            _follow(result, location(response.headers))
        elif kind.is_robots:
            self._obey(result, response, read.challenge)
        elif read.unread:
            result.error = read.unread
            result.notes.append(("unread", read.unread))
        elif status == 200:
            result.found, result.changed = read.found, read.changed
            result.error = read.flaw or result.error
            if not kind.is_list:
                self._take_content(result, response, read, to_render=to_render)
        elif status == _PAYMENT_REQUIRED:
            result.notes += _those_of(response.headers, _PRICES)
        there = 200 <= status < 300 or status == 304
        if there and not kind.is_robots and not read.challenge and (self._consent.obeyed or not kind.is_list):
            self._judge(result, response, read)
        if read.wall_marks or read.challenge:
            _note_walls(result, read)
        return result

    def _judge(self, result: LeaseResult, response: Response, read: ReadPage) -> None:
        """Note what the words of site, answer and page come to; of a page that they reserve nothing more is taken."""
        headers, facts, words = response.headers, read.facts, list[Note]()
        site = self._consent.site_words(result.row.url)
        if site or not dict.keys(headers).isdisjoint(_AI_USE_NAMES):
            words = stated_by_site(site, _those_of(headers, _AI_USE_NAMES))
        if facts is None and (robots := dict.get(headers, b"X-Robots-Tag")):
            words += page_robots((), [value.decode("latin-1") for value in robots], self._token).ai_use
        if read.feed is not None:
            words += license_of_feed(response.body, result.row.url)
        if words:
            result.notes += words
        if facts is not None and facts.ai_use:
            words = [*words, *facts.ai_use]
        if words:
            _note_verdict(result, words, self._consent)

    def _obey(self, result: LeaseResult, response: Response, wall: str) -> None:
        """A robots.txt, or a document beside it: the part of its body that is obeyed; unusable if it was cut.

        ``wall``: whose anti-bot wall answered instead.
        """
        if wall:
            result.error = wall_answered(wall)
        if wall or not 200 <= response.status < 300:
            return
        body, wire = usable_body(result.body, response.flags), result.wire
        if body is None:
            result.status = None
            result.reason = Reason.DISCONNECTED if wire is not None and wire.truncated else Reason.BAD_RESPONSE
            result.error = f"robots.txt cannot be used ({', '.join(response.flags)}): as if it could not be reached"
            return
        result.body = body
        row = result.row
        elsewhere = row.via == row.note + "/robots.txt"  # a licence that another host has
        if document_of(row.hops) and (elsewhere or not row.hops.endswith(HOP_REDIRECT)):
            rules = read_document(row.url, response.status, body, row.note.partition("://")[2])
            result.notes += bounded((source_of(result.row.url), words) for _, words in rules)
        if self._sitemaps and response.status == 200 and not document_of(result.row.hops):
            listed = sitemaps_of_robots(result.row, parse_robots(body, self._token))
            result.found, result.error = listed.found, listed.flaw or result.error

    def _take_content(self, result: LeaseResult, response: Response, read: ReadPage, *, to_render: bool) -> None:
        notes, facts = result.notes, read.facts
        if facts is not None:
            _note_page(notes, facts)
            if read.triage.signals and not read.challenge:
                notes.append(("triage", str(read.triage)))
        result.is_feed = read.feed is not None
        if facts is not None and to_render:  # what the browser shows is compared, and needs its own files
            result.shell = facts.words, read.links
            return
        result.requisites = read.requisites
        if facts is not None:
            _compare(result, read, facts)


def _note_verdict(result: LeaseResult, words: list[Note], consent: Consent) -> None:
    url = result.row.url
    unread: list[tuple[Note, str]] = []
    named = [note for note in words if note[0] in (Source.HEADER, Source.PAGE) and note[1].startswith("license:")]
    for note in named:
        address = Base(url).join(note[1].partition(":")[2].strip())
        licences = consent.license_words(url, address.url) if address is not None else None
        if licences is None:
            unread.append((note, "" if address is None else address.url))
        else:
            new = [each for each in licences if each not in words]
            words, result.notes = [*words, *new], [*result.notes, *new]
    judged = judge(words, consent.purpose)
    if consent.obeyed and unread and judged.verdict is not Verdict.RESERVED:
        (note, result.license_named), *_ = unread
        judged = Judgement(Verdict.RESERVED, *note)
    result.notes.append((NOTE, judged.verdict))
    if consent.obeyed and judged.verdict is Verdict.RESERVED:
        reason = reservation(judged)
        result.withhold(reason if reason in RESERVED else Reason.RESERVED_LICENSE, judged.words)


def rendered_result(lease: Lease, rendered: Rendered, read: ReadPage, consent: Consent = RECORDED) -> LeaseResult:
    """The result of a render: the links of the page as its scripts left it, and where they wanted to go."""
    result = LeaseResult(lease.row, Reason.RENDERED, lease=lease, rendered=rendered, is_render=True)
    facts = read.facts
    if facts is None:
        result.error = read.unread
        result.notes.append(("unread", read.unread))
        return result
    result.error, result.requisites = read.flaw, read.requisites
    result.found = read.found if facts.nofollow else [*read.found, *navigated(lease.row, rendered.navigations)]
    result.gained = facts.words, read.links
    _compare(result, read, facts)
    _note_page(result.notes, facts)
    _note_walls(result, read)
    if words := [*consent.site_words(lease.row.url), *facts.ai_use]:
        _note_verdict(result, words, consent)
    return result


def _follow(result: LeaseResult, location: str) -> None:
    """A redirect, with its target unless it is one too many. That of a robots.txt is followed by the frontier."""
    row = result.row
    target = Base(row.url).join(location) if location else None
    if target is None:
        return
    result.location = target.url
    if row.kind.is_robots:
        return
    if redirected_enough(row):
        result.error = f"more than {MAX_REDIRECTS} redirects in a row"
    else:
        result.target = redirected(row, target)


def _compare(result: LeaseResult, read: ReadPage, facts: PageFacts) -> None:
    """The text of an HTML page is compared with other pages'."""
    result.is_text, result.marks = True, read.text_marks
    result.canonical, result.fingerprint = facts.canonical, facts.fingerprint


def _note_page(notes: list[Note], facts: PageFacts) -> None:
    """What an HTML page says of itself, as lines of the metadata record."""
    notes.append(("charset-detected", facts.encoding))
    if facts.canonical is not None:
        notes.append(("canonical", facts.canonical.url))
    if facts.unparsed:
        notes.append(("unparsed", "parser-bomb"))
    if facts.noindex:
        notes.append(("robots-meta", "noindex"))
    if facts.nofollow:
        notes.append(("robots-meta", "nofollow"))
    notes.extend(facts.ai_use)


def _note_walls(result: LeaseResult, read: ReadPage) -> None:
    """What a page has of anti-bot walls, and whose wall it is."""
    if read.wall_marks:
        result.notes.append(("wall-marks", read.wall_marks))
    if read.challenge:
        result.notes.append(("challenge", read.challenge))
        result.reason = Reason.CHALLENGE
