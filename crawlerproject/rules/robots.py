"""Decides what a robots.txt allows (RFC 9309): Protego's matching behind one wrapper that cures its faults.

What is cured, and where (raw Protego 0.7.0 gives 45 wrong verdicts of 616 conformance cases):

* groups: only the rules said to our token (whole token, case ignored) or else to ``*`` reach Protego, as its one
  group. It matches tokens by prefix, ends a list of agents at unknown lines, and copies rules per agent
  (a 300 KB file took 81 s). ``robots_text`` does the reading;
* octets: byte order marks, line ends, bytes that are no UTF-8, the 500 KiB cap: ``robots_text`` again;
* escapes: patterns and paths are brought to one spelling here, then their "%" is hidden from Protego, which
  would decode %3F into "?" and every invalid escape into the same character, and take a final "$" literally too;
* priorities: "most octets" (RFC 9309 2.2.2) of the rule as written, not of its quoted form.
"""

from __future__ import annotations

import re
import struct
from enum import Enum
from functools import lru_cache
from typing import NamedTuple, Self

from protego import Protego

from crawlerproject.rules.robots_text import RobotsText, Rule, VisitTime, read_robots_text

# RFC 9309 2.3.1.2: "crawlers SHOULD follow at least five consecutive redirects".
MAX_REDIRECTS = 5
# RFC 9309 2.3.1.4: a cached copy may serve while robots.txt is unreachable, "for example, 30 days".
STALE_SECONDS = 30 * 86400.0

# Equal rule sets (WordPress's default, "Disallow: /") share one matcher, which keeps memory small over a
# million hosts. Sets above this many characters are rarely equal and would make the memory unbounded.
_SHARED_MATCHERS = 4096
_SHARED_CHARACTERS = 2000

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986 2.3
_PLAIN = re.compile(r"[A-Za-z0-9\-._~/?]*").fullmatch
_PATH_SPECIAL = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?]")
_PATTERN_SPECIAL = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?*]")
# Protego wants a whole URL, or it takes "//x" for a host.
_ORIGIN = "http://h"


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
        "request_rate_seconds",
        "sitemaps",
        "visit_times",
    )

    def __init__(self, matcher: Protego | None, text: RobotsText) -> None:
        self._matcher = matcher
        self.crawl_delay_seconds: float | None = text.crawl_delay_seconds
        self.request_rate_seconds: float | None = text.request_rate_seconds
        self.visit_times: tuple[VisitTime, ...] = text.visit_times
        self.content_signals: tuple[str, ...] = text.content_signals  # Content-Signal and Content-Usage, as written
        self.sitemaps: tuple[str, ...] = text.sitemaps  # as written: may be relative

    def allowed(self, url: str) -> bool:
        """Whether ``url`` (absolute http(s), or path and query) may be fetched; robots.txt itself always."""
        matcher = self._matcher
        if matcher is None:
            return True
        path = _path_of(url)
        if path.partition("?")[0] == "/robots.txt":
            return True
        if not _PLAIN(path):
            path = _PATH_SPECIAL.sub(_spelled, path).replace("%", "%25")
        return bool(matcher.can_fetch(_ORIGIN + path, "*"))

    @property
    def floor_seconds(self) -> float:
        """The pause the owner asks for: the longer of Crawl-delay and Request-rate; 0 when neither is given."""
        return max(self.crawl_delay_seconds or 0.0, self.request_rate_seconds or 0.0)

    def seconds_until_open(self, now: float) -> float:
        """Seconds from ``now`` (epoch) until the owner's next Visit-time; 0 inside one, or when there is none."""
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

    def pack(self) -> bytes:
        """The record as bytes; the first says the format."""
        word = self.reason.encode()
        head = _RECORD.pack(_RECORD_FORMAT, self.status, self.fetched_at, self.expires_at, len(word))
        return head + word + self.body

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """The record that ``pack`` wrote; ValueError for anything else."""
        if len(packed) < _RECORD.size or packed[0] != _RECORD_FORMAT:
            raise ValueError("not a robots.txt record of this version")
        _, status, fetched_at, expires_at, length = _RECORD.unpack_from(packed)
        body_at = _RECORD.size + length
        return cls(status, packed[body_at:], fetched_at, expires_at, packed[_RECORD.size : body_at].decode())


_RECORD = struct.Struct("<BHddB")
_RECORD_FORMAT = 1


def parse_robots(body: bytes, token: str) -> RobotsRules:
    """The rules that ``body`` holds for product token ``token``. Cost is linear in the body; call on cache misses."""
    text = read_robots_text(body, token)
    if text == _SILENT:
        return ALLOW_ALL
    return RobotsRules(_matcher(text.rules), text)


def deciding_rule(body: bytes, token: str, url: str) -> Rule | None:
    """The rule that decides about ``url``: the longest that matches, Allow before Disallow; None when none does."""
    matching = [
        rule
        for rule in read_robots_text(body, token).rules
        if not RobotsRules(_build_matcher((Rule(False, rule.pattern),)), _SILENT).allowed(url)
    ]
    return max(matching, key=lambda rule: (len(rule.pattern), rule.allow), default=None)


def robots_verdict(status: int | None) -> RobotsVerdict:
    """What to do after a robots.txt answer; ``status`` None: no answer came. Doubt means wait."""
    if status is None:
        return RobotsVerdict.WAIT
    if 200 <= status < 300:
        return RobotsVerdict.PARSE
    if 300 <= status < 400 and status != 304:  # an unasked-for 304 tells nothing
        return RobotsVerdict.REDIRECT
    # 429 asks to slow down: Google treats it as a server error, and so do we (RFC 9309 leaves it with 4xx).
    return RobotsVerdict.ALLOW if 400 <= status < 500 and status != 429 else RobotsVerdict.WAIT


_SILENT = RobotsText()


def _matcher(rules: tuple[Rule, ...]) -> Protego | None:
    """A matcher for these rules; None when nothing is disallowed, since allowing is the default."""
    if all(rule.allow for rule in rules):
        return None
    small = sum(len(rule.pattern) for rule in rules) <= _SHARED_CHARACTERS
    return _shared_matcher(rules) if small else _build_matcher(rules)


def _build_matcher(rules: tuple[Rule, ...]) -> Protego:
    """Protego with one group holding all rules, its priorities set to the octets of each rule."""
    lines = ["User-agent: *"]
    octets: dict[str, int] = {}
    for rule in rules:
        pattern = _protego_pattern(rule.pattern)
        if pattern:
            octets[pattern] = max(len(rule.pattern), octets.get(pattern, 0))
            lines.append(("Allow: " if rule.allow else "Disallow: ") + pattern)
    matcher = Protego.parse("\n".join(lines))
    # Private names of Protego 0.7 (the version is pinned); a conformance case fails should they change.
    for written, url_pattern in matcher._url_patterns.items():
        if url_pattern is not None and written in octets:
            url_pattern.priority = octets[written]
    for group in matcher._user_agents.values():
        group.finalize_rules()
    return matcher


_shared_matcher = lru_cache(maxsize=_SHARED_MATCHERS)(_build_matcher)


def _protego_pattern(pattern: str) -> str:
    """A rule's pattern in our one spelling, its "%" hidden from Protego; the final "$" stays an anchor."""
    if pattern.startswith(("http://", "https://")):
        pattern = "/" + pattern  # an address written by mistake: paths that hold it are denied, as Protego does
    anchor = "$" if pattern.endswith("$") else ""
    spelled = _PATTERN_SPECIAL.sub(_spelled, pattern.removesuffix("$"))
    return spelled.replace("%", "%25") + anchor


def _path_of(url: str) -> str:
    """Path and query of an absolute URL, or of what is a path already; the fragment is dropped."""
    url = url.partition("#")[0]
    if url[:1] == "/":
        return url
    _, separator, rest = url.partition("://")
    if not separator:
        return "/" + url
    starts = [at for at in (rest.find("/"), rest.find("?")) if at >= 0]
    path = rest[min(starts) :] if starts else ""
    return path if path[:1] == "/" else "/" + path


def _spelled(match: re.Match[str]) -> str:
    """One spelling for a character: unreserved ones bare, all others %XX in capitals (RFC 3986 6.2.2)."""
    found = match[0]
    if len(found) == 3 and found[0] == "%":
        octet = int(found[1:], 16)
        return chr(octet) if octet in _UNRESERVED else found.upper()
    return "".join(f"%{octet:02X}" for octet in found.encode("utf-8", "replace"))
