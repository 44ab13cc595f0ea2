"""Decides what a robots.txt allows (RFC 9309): its groups, its statuses, how long it is kept.

``parser`` reads the octets and keeps the groups that apply to us, ``matcher`` finds the rule that decides.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from copy import copy
from enum import Enum
from functools import lru_cache
from typing import NamedTuple, Self

from crawlerproject.rules.archive.http_messages import UNDECODED, payload_type
from crawlerproject.rules.consent.terms import Terms
from crawlerproject.rules.consent.verdict import Note
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS, LONGEST_SECONDS
from crawlerproject.rules.robots.matcher import (
    MAX_WILDCARD_RULES,
    Matcher,
    MatcherIndex,
    PathAccess,
    rule_matches,
    spelled,
)
from crawlerproject.rules.robots.parser import MAX_BYTES, RobotsText, Rule, VisitTime, read_robots_text

# RFC 9309 2.3.1.2: "crawlers SHOULD follow at least five consecutive redirects".
MAX_REDIRECTS = 5
# Redirects to other sites that one host's robots.txt has led to: it has no use for more targets than that.
MOST_TARGETS = 5
# Of one host, for the robots.txt files of one registered domain within ROBOTS_TTL_SECONDS (ours): sites that keep the
# files of many hosts in one place keep one for each, and no owner needs a stranger asked for more than these.
MOST_ASKED = 40
# RFC 9309 2.3.1.4: a cached copy may serve while robots.txt is unreachable, "for example, 30 days".
STALE_SECONDS = 30 * 86400.0

# Equal rule sets (WordPress's default, "Disallow: /") share one matcher, which keeps memory small over a
# million hosts. Sets above this many characters are rarely equal and would make the memory unbounded.
_SHARED_MATCHERS = 4096
_SHARED_CHARACTERS = 2000
KEPT_BYTES = 2 * MAX_BYTES + 2
"""Of a body so much is kept: enough to be read to the same end (UTF-16 is read to twice the bound)."""
# What a rule takes apart from its characters, in the same unit.
_RULE_SIZE = 16
# The same answer is read by the spider (sitemaps), the frontier (rules) and the pace (floor), within one turn.
_KEPT_FOR_OTHERS = 4
_BROKEN = frozenset({"truncated-time", "truncated-disconnect", "encoding-damaged"})
_SILENT = RobotsText()
_RECORD = struct.Struct("<BHddB")
_TERMS_LENGTH = struct.Struct("<I")
_RECORD_FORMAT, _WITH_TERMS = 1, 2


class RobotsVerdict(Enum):
    """What the status of a robots.txt answer means (RFC 9309 2.3.1)."""

    PARSE = "parse"
    ALLOW = "allow"  # unavailable: no rules
    WAIT = "wait"  # unreachable: no page, ask again later
    REDIRECT = "redirect"  # followed up to MAX_REDIRECTS; past that, or without a Location, as ALLOW


class RobotsRules:
    """What one origin's robots.txt allows our product token. Immutable."""

    __slots__ = (
        "_matcher",
        "content_signals",
        "crawl_delay_seconds",
        "left_alone",
        "licenses",
        "request_rate_seconds",
        "sitemaps",
        "size",
        "terms",
        "visit_times",
    )

    def __init__(self, matcher: Matcher | None, text: RobotsText) -> None:
        self._matcher = matcher
        self.size = sum(len(rule.pattern) + _RULE_SIZE for rule in text.rules)  # what it takes to keep, in characters
        self.crawl_delay_seconds: float | None = text.crawl_delay_seconds
        self.request_rate_seconds: float | None = text.request_rate_seconds
        # The pause that the owner asks for is beyond LEAVE_ALONE_SECONDS: no page is allowed.
        self.left_alone = max(text.crawl_delay_seconds or 0.0, text.request_rate_seconds or 0.0) > LEAVE_ALONE_SECONDS
        self.visit_times: tuple[VisitTime, ...] = text.visit_times
        self.content_signals: tuple[str, ...] = text.content_signals  # Content-Signal and Content-Usage, as written
        self.sitemaps: tuple[str, ...] = text.sitemaps  # as written: may be relative
        self.licenses: tuple[str, ...] = text.licenses  # likewise
        self.terms: Terms | None = None  # what the documents beside it say; None: they were not asked for

    def with_terms(self, terms: Terms) -> RobotsRules:
        """The same rules, and what the documents beside them say."""
        rules = copy(self)
        rules.terms, rules.size = terms, self.size + terms.size
        return rules

    def terms_for(self, url: str) -> list[Note]:
        """What the documents beside it say of ``url``."""
        return self.terms.notes(spelled(_path_of(url))) if self.terms is not None else []

    def license_terms_for(self, url: str, license: str) -> list[Note] | None:
        """What the licence at an address says of ``url``; None: that is not known."""
        return self.terms.license_notes(license, spelled(_path_of(url))) if self.terms is not None else None

    def words_for(self, url: str) -> tuple[str, ...]:
        """What Content-Signal and Content-Usage say of ``url``: those for the longest path that matches, as written.

        A path may stand before the words (draft-ietf-aipref-attach); it matches as in a rule.
        """
        if not self.content_signals:
            return ()
        path, longest, found = spelled(_path_of(url)), -1, list[str]()
        for words in self.content_signals:
            pattern = words.split(None, 1)[0] if words[:1] in ("/", "*") else ""
            if len(pattern) < longest or not rule_matches(pattern or "/", path):
                continue
            if len(pattern) > longest:
                longest, found = len(pattern), []
            found.append(words)
        return tuple(found)

    def allowed(self, url: str) -> bool:
        """Whether ``url`` (absolute http(s), or path and query) may be fetched; robots.txt itself always."""
        return self.verdict(url) is PathAccess.ALLOW

    def verdict(self, url: str) -> PathAccess:
        """What the rules say of ``url``; DOUBT when they would cost too much to try (``Matcher``)."""
        if self._matcher is None and not self.left_alone:
            return PathAccess.ALLOW
        path = _path_of(url)
        if path.startswith("/robots.txt") and path.partition("?")[0] == "/robots.txt":
            return PathAccess.ALLOW
        if self._matcher is None or self.left_alone:
            return PathAccess.DENY
        return self._matcher.verdict(spelled(path))

    def index(self) -> MatcherIndex | None:
        """What decides about a path, but for robots.txt; None: nothing is disallowed."""
        return None if self._matcher is None else self._matcher.index()

    @property
    def floor_seconds(self) -> float:
        """The pause the owner asks for: the longer of Crawl-delay and Request-rate; 0 when neither is given.

        At most ``LONGEST_SECONDS``: 1e308 is no moment that a clock or a calendar could be asked about.
        """
        return min(max(self.crawl_delay_seconds or 0.0, self.request_rate_seconds or 0.0), LONGEST_SECONDS)

    def seconds_until_open(self, now: float) -> float:
        """Seconds from ``now`` (epoch) until the owner's next Visit-time; 0 inside one, or without any."""
        second = now % 86400.0
        waits = []
        for start, end in self.visit_times:
            since = (second - start * 60) % 86400.0
            if since < (end - start) % 1440 * 60:
                return 0.0
            waits.append(86400.0 - since)
        return min(waits, default=0.0)


ALLOW_ALL = RobotsRules(None, RobotsText())


class RobotsRecord(NamedTuple):
    """A robots.txt as the store keeps it, to be parsed again on a cache miss."""

    status: int  # of the answer it came from; 0 when there was none
    body: bytes
    fetched_at: float  # epoch seconds
    expires_at: float  # epoch seconds
    reason: str  # a Reason's word
    terms: bytes = b""  # ``Terms``, packed: of the documents beside it, where these are asked for

    def pack(self) -> bytes:
        """The record as bytes; the first says the format."""
        word = self.reason.encode()
        version = _WITH_TERMS if self.terms else _RECORD_FORMAT
        head = _RECORD.pack(version, self.status, self.fetched_at, self.expires_at, len(word))
        terms = _TERMS_LENGTH.pack(len(self.terms)) + self.terms if self.terms else b""
        return head + word + terms + self.body

    def rules(self, token: str) -> RobotsRules:
        """What it says to a product token, with what the documents beside it say."""
        rules = parse_robots(self.body, token)
        return rules.with_terms(Terms.unpack(self.terms)) if self.terms else rules

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """The record that ``pack`` wrote; ValueError for anything else."""
        if len(packed) < _RECORD.size or packed[0] not in (_RECORD_FORMAT, _WITH_TERMS):
            raise ValueError("not a robots.txt record of this version")
        _, status, fetched_at, expires_at, length = _RECORD.unpack_from(packed)
        body_at = _RECORD.size + length
        reason, terms = packed[_RECORD.size : body_at].decode(), b""
        if packed[0] == _WITH_TERMS:
            terms_at = body_at + _TERMS_LENGTH.size
            body_at = terms_at + _TERMS_LENGTH.unpack_from(packed, body_at)[0]
            terms = packed[terms_at:body_at]
        return cls(status, packed[body_at:], fetched_at, expires_at, reason, terms)


def parse_robots(body: bytes, token: str) -> RobotsRules:
    """The rules that ``body`` holds for product token ``token``. Cost is linear in the body; call on cache misses."""
    return _parsed(body[:KEPT_BYTES], token)


def may_allow_more(before: bytes, body: bytes, token: str) -> bool:
    """Whether ``body`` may allow URLs that ``before`` forbade: it lacks a Disallow, or has an Allow more."""
    if body == before:
        return False
    old, new = read_robots_text(before, token), read_robots_text(body, token)
    if RobotsRules(None, new).left_alone:
        return False
    lost, gained = set(old.rules) - set(new.rules), set(new.rules) - set(old.rules)
    lifted = RobotsRules(None, old).left_alone
    return lifted or not all(rule.allow for rule in lost) or any(rule.allow for rule in gained)


@lru_cache(maxsize=_KEPT_FOR_OTHERS)
def _parsed(body: bytes, token: str) -> RobotsRules:
    text = read_robots_text(body, token)
    if text == _SILENT:
        return ALLOW_ALL
    return RobotsRules(_matcher(text.rules), text)


def refusing_line(body: bytes, token: str, url: str) -> str:
    """What in ``body`` forbids ``url``, as its owner wrote it or in our words; "" when nothing does. Slow."""
    rules = parse_robots(body, token)
    if rules.allowed(url):
        return ""
    if rules.left_alone:
        delay, rate = rules.crawl_delay_seconds or 0.0, rules.request_rate_seconds or 0.0
        wish = f"Crawl-delay: {delay:g}" if delay >= rate else f"Request-rate: one in {rate:g} s"
        return f"{wish}: beyond {LEAVE_ALONE_SECONDS / 86_400:.0f} days, that is to be left alone"
    if rules.verdict(url) is PathAccess.DOUBT:
        return "wildcard rules that would take too long to try on this address: doubt means no"
    rule = deciding_rule(body, token, url)
    if rule is None or rule.allow:
        return f"more than {MAX_WILDCARD_RULES:,} wildcard rules, of which the last are read as wider than they are"
    return f"Disallow: {rule.pattern}"


def deciding_rule(body: bytes, token: str, url: str) -> Rule | None:
    """The rule that decides about ``url``: the longest that matches, Allow before Disallow; None when none does."""
    path = spelled(_path_of(url))
    matching = [rule for rule in read_robots_text(body, token).rules if rule_matches(rule.pattern, path)]
    return max(matching, key=lambda rule: (len(rule.pattern), rule.allow), default=None)


def robots_verdict(status: int | None) -> RobotsVerdict:
    """What to do after a robots.txt answer; ``status`` None: no answer came. Doubt means wait."""
    if status is None:
        return RobotsVerdict.WAIT
    if 200 <= status < 300:
        return RobotsVerdict.PARSE
    if 300 <= status < 400 and status != 304:  # an unasked-for 304 says nothing of the file
        return RobotsVerdict.REDIRECT
    # 429 asks to slow down: Google treats it as a server error, and so do we (RFC 9309 leaves it with 4xx).
    return RobotsVerdict.ALLOW if 400 <= status < 500 and status != 429 else RobotsVerdict.WAIT


def sent_on(before: Mapping[str, float], target: str, now: float, ttl_seconds: float) -> dict[str, float] | None:
    """What to remember when a host sends us on to ``target`` (a URL of another registered domain); None: do not go.

    ``before`` are the targets that the host has sent us to and until when (epoch seconds) that counts. Each is asked
    once in ``ttl_seconds``, as a robots.txt is.
    """
    kept = {url: until for url, until in before.items() if until > now}
    if target in kept or len(kept) >= MOST_TARGETS:
        return None
    return {**kept, target: now + ttl_seconds}


def usable_body(body: bytes, flags: Collection[str]) -> bytes | None:
    """What of a 2xx answer's body is read as robots.txt; None when it counts as unreachable: doubt means no.

    ``flags`` are the response's (fetch/download_handler.py). What came too slowly or broke off may lack the line that
    forbids (RFC 9309 2.3.1.4); what was cut for its length is read as far as it goes (2.5), but for half a line.
    """
    if not _BROKEN.isdisjoint(flags):
        return None
    if not UNDECODED.isdisjoint(flags) and not (payload_type(body) or "").startswith("text/"):
        return None  # the coding is not one that we can undo, and the octets are no text as they are
    if "truncated-length" in flags and len(body) <= MAX_BYTES:
        return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    return body


def wall_answered(vendor: str) -> str:
    """Why an answer counts as unreachable, in words: a wall's is no statement of the owner's (RFC 9309 has no case)."""
    return f"an anti-bot wall ({vendor}) answered, not the owner: as if robots.txt could not be reached"


def _matcher(rules: tuple[Rule, ...]) -> Matcher | None:
    """A matcher for these rules; None when nothing is disallowed, since allowing is the default."""
    if all(rule.allow for rule in rules):
        return None
    small = sum(len(rule.pattern) for rule in rules) <= _SHARED_CHARACTERS
    return _shared_matcher(rules) if small else Matcher(rules)


_shared_matcher = lru_cache(maxsize=_SHARED_MATCHERS)(Matcher)


def _path_of(url: str) -> str:
    """Path and query of an absolute URL, or of what is a path already; the fragment is dropped."""
    if "#" in url:
        url = url.partition("#")[0]
    if url[:1] == "/":
        return url
    _, separator, rest = url.partition("://")
    if not separator:
        return "/" + url
    host, _, path = rest.partition("/")
    return "/" + path if "?" not in host else "/" + rest[host.index("?") :]
