"""Reads robots.txt octets line by line and keeps the groups that apply to us: the part of RFC 9309 before matching.

One linear pass, whatever the file: rules are never copied per agent, so a hostile file with thousands of
agents and rules costs what its length costs.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from crawlerproject.rules.consent.verdict import DOUBT

# RFC 9309 2.5: "the parsing limit ... MUST be at least 500 kibibytes"; Google's crawler reads as much.
MAX_BYTES = 500 * 1024
# A robots.txt names a handful of sitemaps; the largest of 4,231 real files names some hundreds.
MAX_SITEMAPS = 1000
# Lines of Content-Signal and Content-Usage, each matched against every URL, and bytes of one (ours).
_MAX_SIGNALS = 100
_MAX_SIGNAL_BYTES = 1000
# RSL 1.0 has one; as much as any owner could mean.
_MAX_LICENSES = 10
# Rate units of Request-rate, seconds each (the extension as Protego and crawler-commons read it).
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MINUTES_A_DAY = 1440

# Field spellings: RFC 9309's, and the misspellings that Google's parser and Protego both accept. As Google's parser
# reads them, whatever more stands before the colon: "Disallowed:", "User-agents:", "Allow all:".
_PREFIXES: dict[bytes, str] = {
    b"user-agent": "agent", b"useragent": "agent", b"user agent": "agent",
    b"allow": "allow",
    b"disallow": "disallow", b"dissallow": "disallow", b"dissalow": "disallow", b"disalow": "disallow",
    b"diasllow": "disallow", b"disallaw": "disallow",
    b"sitemap": "sitemap", b"site-map": "sitemap",
}  # fmt: skip
# Extensions, spelled exactly so.
_EXACT: dict[bytes, str] = {
    b"crawl-delay": "delay", b"crawl delay": "delay", b"crawldelay": "delay",
    b"request-rate": "rate", b"request rate": "rate",
    b"visit-time": "visit", b"visit time": "visit",
    b"content-signal": "signal", b"content-usage": "signal",
    b"license": "license",
}  # fmt: skip
_FIELDS = _PREFIXES | _EXACT
# As nearly all files write them: looked up without a change of case, and tried first.
_USUAL: dict[bytes, str] = {
    b"Disallow": "disallow", b"Allow": "allow", b"User-agent": "agent", b"User-Agent": "agent", b"Sitemap": "sitemap",
}  # fmt: skip
_BLANK = b" \t\x0b\x0c\x00"
# All lines with a field that we know, at once: its name, and its value up to a comment. A colon ends the name. So does
# white space, since owners forget the colon: before what is the line's only other word, as Google's parser has it, and
# (ours) before a path or an address with a colon of its own. Possessive: nothing is read twice but one word.
_WORD = rb"(?:(?:[/*]|https?:)[^%(blank)s#\n]*+|[^%(blank)s#\n:]++)" % {b"blank": _BLANK}
_KNOWN_LINES = re.compile(
    rb"^[%(blank)s]*+(?=[%(first)s])(?:"
    rb"(%(prefixes)s)(?:[ \t]*+:|[^%(blank)s:#\n]*+[ \t]++(?=%(word)s[%(blank)s]*+(?:[#\n]|\Z))|[^:#\n]*+:)|"
    rb"(%(exact)s)(?:[ \t]*+:|[ \t]++(?=[%(blank)s]*+[^%(blank)s#\n]))"
    rb")([^#\n]*+)"
    % {
        b"blank": _BLANK,
        b"word": _WORD,
        b"first": b"".join({name[:1] for name in _FIELDS}),
        b"prefixes": b"|".join(map(re.escape, dict.fromkeys([*map(bytes.lower, _USUAL), *_PREFIXES]))),
        b"exact": b"|".join(map(re.escape, _EXACT)),
    },
    re.IGNORECASE | re.MULTILINE,
)
# RFC 9309 2.2 asks for a UTF-8 file; a byte order mark, whole or cut, is skipped as Google's parser does.
_UTF8_BOM = re.compile(rb"\xef(?:\xbb\xbf?)?")
# The leading product token of one name. RFC 9309 2.2.1 has no digits; names with digits exist, so we keep them.
_TOKEN = re.compile(rb"[A-Za-z0-9_-]+")
_NO_BREAK = (b"\xa0", b"\xc2\xa0")  # the no-break space in Latin-1 and UTF-8, pasted in by editors
_HIGH = re.compile(rb"[\x80-\xff]++")
_ESCAPED = [b"%%%02X" % octet for octet in range(256)]
_NUMBER = re.compile(rb"(?:\d++(?:[.,]\d++)?|[.,]\d++)(?:e\+?\d++(?!\w))?|inf(?:inity)?(?!\w)", re.IGNORECASE)
_RATE = re.compile(rb"(\d++)\s*+/\s*+(\d++)\s*+([smhd]?)", re.IGNORECASE)
_PERIOD = re.compile(rb"(\d{1,2}):?(\d{2})(?:\s*+(?:-|to)\s*+|\s++)(\d{1,2}):?(\d{2})", re.IGNORECASE)


class Rule(NamedTuple):
    """One Allow or Disallow line; ``pattern`` is ASCII, octets above 127 are written %XX."""

    allow: bool
    pattern: str


class VisitTime(NamedTuple):
    """A daily window in which the owner wishes to be visited; minutes after midnight UTC, the end excluded."""

    start_minute: int
    end_minute: int


class RobotsText(NamedTuple):
    """What a robots.txt says to one product token, before any matching."""

    rules: tuple[Rule, ...] = ()
    crawl_delay_seconds: float | None = None
    request_rate_seconds: float | None = None
    visit_times: tuple[VisitTime, ...] = ()
    content_signals: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    licenses: tuple[str, ...] = ()  # of RSL, whatever group they stand in


class _Group:
    """All lines for one name, groups merged (RFC 9309 2.2.1)."""

    __slots__ = ("delay", "named", "rate", "rules", "signals", "visits")

    def __init__(self) -> None:
        self.named = False
        self.rules: dict[tuple[bool, bytes], None] = {}  # a set that keeps order: files repeat themselves
        self.delay: float | None = None
        self.rate: float | None = None
        self.visits: dict[VisitTime, None] = {}
        self.signals: dict[str, None] = {}

    def take(self, field: str, value: bytes) -> None:
        """Take in one line of a group that is no rule; what cannot be read is left out."""
        if field == "delay":
            self.delay = _longer(self.delay, leading_number(value))
        elif field == "rate":
            self.rate = _longer(self.rate, rate_seconds(value))
        elif field == "visit":
            window = visit_time(value)
            if window is not None:
                self.visits[window] = None
        elif field == "signal":
            whole = len(self.signals) < _MAX_SIGNALS and len(value) <= _MAX_SIGNAL_BYTES
            self.signals[_ascii(value) if whole else f"{DOUBT}: too many words of use"] = None


def read_robots_text(body: bytes, token: str) -> RobotsText:
    """What ``body`` says to the product token ``token`` (or to ``*`` when no group names it)."""
    ours, everyone = _Group(), _Group()
    wanted = token.lower().encode("ascii", "replace")
    current: list[_Group] = []  # the groups the present agent lines name
    naming = False  # the last rule-or-agent line was an agent line
    sitemaps: dict[str, None] = {}
    licenses: dict[str, None] = {}
    for prefix, exact, rest in _KNOWN_LINES.findall(_text(body)):
        name = prefix or exact
        field = _USUAL.get(name) or _FIELDS[name.lower()]
        value = rest.strip(_BLANK)
        if field == "disallow" or field == "allow":
            # RFC 9309 2.2.4: other records must not interfere, so only rules close a list of agents.
            naming = False
            if value:
                for group in current:
                    group.rules[field == "allow", value] = None
        elif field == "agent":
            if not naming:
                current, naming = [], True
            current += [g for g, hit in _named(value, wanted, ours, everyone) if hit and g not in current]
        elif field == "sitemap":
            if value and len(sitemaps) < MAX_SITEMAPS:
                sitemaps[value.decode("utf-8", "replace")] = None
        elif field == "license":
            if value and len(licenses) < _MAX_LICENSES:
                licenses[value.decode("utf-8", "replace")] = None
        else:
            for group in current:
                group.take(field, value)
    group = ours if ours.named else everyone
    rules = tuple([Rule(allow, _ascii(value)) for allow, value in group.rules])
    wishes = group.delay, group.rate, tuple(group.visits), tuple(group.signals)
    return RobotsText(rules, *wishes, tuple(sitemaps), tuple(licenses))


def leading_number(value: bytes) -> float | None:
    """The number a value starts with ("10", "10s", "0,5", "1e3", "inf"); None without one.

    Infinite when it is beyond what a float holds: the owner wrote a number, and a large one.
    """
    match = _NUMBER.match(value)
    return float(match[0].replace(b",", b".")) if match is not None else None


def rate_seconds(value: bytes) -> float | None:
    """Seconds between two requests under a Request-rate ("1/5s" is 5); any time of day after it is ignored."""
    match = _RATE.match(value)
    if match is None:
        return None
    requests, period = float(match[1]), float(match[2]) * _UNIT_SECONDS[match[3].decode().lower()]
    if not requests or not period:
        return None
    return period if math.isinf(period) else period / requests


def visit_time(value: bytes) -> VisitTime | None:
    """The window of a Visit-time ("0400-0845", "0400 0845", "04:00-08:45", UTC); None for any other value."""
    match = _PERIOD.match(value)
    if match is None:
        return None
    hour, minute, end_hour, end_minute = (int(part) for part in match.groups())
    if minute > 59 or end_minute > 59:
        return None
    start, end = hour * 60 + minute, end_hour * 60 + end_minute
    if start >= _MINUTES_A_DAY or end > _MINUTES_A_DAY or start == end:
        return None
    return VisitTime(start, end)


def _text(body: bytes) -> bytes:
    """The file, capped, its lines ended by LF; a line that the cap cuts is dropped, for half a rule is another rule.

    RFC 9309 2.2: CR, LF or CRLF end a line, and nothing else (no U+2028, no form feed).
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16: not allowed, but crawler-commons reads it too
        body = body[: 2 * MAX_BYTES].decode("utf-16", "replace").encode()
    if len(body) > MAX_BYTES:
        cut = max(body.rfind(b"\n", 0, MAX_BYTES + 1), body.rfind(b"\r", 0, MAX_BYTES + 1))
        body = body[: max(cut, 0)]
    mark = _UTF8_BOM.match(body)
    return (body[mark.end() :] if mark else body).replace(b"\r", b"\n")


def _named(value: bytes, wanted: bytes, ours: _Group, everyone: _Group) -> list[tuple[_Group, bool]]:
    """Which of the two groups an agent line names; a list with commas names each of its parts (ours)."""
    found = []
    for part in value.split(b","):
        name = part.strip(_BLANK)
        if name == b"*" or (name[:1] == b"*" and (name[1:2].isspace() or name[1:].startswith(_NO_BREAK))):
            everyone.named = True
            found.append((everyone, True))
            continue
        match = _TOKEN.match(name.lstrip(b"*"))
        hit = match is not None and match[0].lower() == wanted
        ours.named = ours.named or hit
        found.append((ours, hit))
    return found


def _longer(known: float | None, new: float | None) -> float | None:
    """The longer of two waits: of several that an owner states we keep the politest."""
    return new if known is None else known if new is None else max(known, new)


def _ascii(value: bytes) -> str:
    """The value with every octet above 127 as %XX, valid UTF-8 or not (RFC 9309 2.2.2)."""
    if value.isascii():
        return value.decode("ascii")
    return _HIGH.sub(lambda match: b"".join([_ESCAPED[octet] for octet in match[0]]), value).decode("ascii")
