"""What a robots.txt says about one URL: our verdict with the line that decides, and Protego's as a second opinion.

Protego is Scrapy's own parser, so a site's owner who doubts our reading has another one beside it. Nothing follows from
it: docs/robots.md says where the two differ, and why a crawl asks ours alone.

Which robots.txt of an origin was in force when, by the index and the archive: each version once, with its text.

Crawls of 1.7 and before kept a copy of each version as ``log/robots/XX/ORIGIN/TIME-SHA1.txt``; these are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha1
from typing import NamedTuple
from urllib.parse import quote

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import archived_body
from crawlerproject.rules.archive.http_messages import header_pairs
from crawlerproject.rules.rendering.thin_pages import archived_robots_wall
from crawlerproject.rules.robots.parser import Rule, read_robots_text
from crawlerproject.rules.robots.policy import KEPT_BYTES, deciding_rule, parse_robots, refusing_line
from crawlerproject.rules.url.urls import Base, url_in_header
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture
from crawlerproject.stores.crawl_dir import CrawlDir

# Protego tries each rule as a regular expression whose steps grow with each wildcard's power of the address: a hostile
# file kept it busy for 81 s (tests/rules/robots). So many steps are a tenth of a second.
_MOST_STEPS = 5_000_000
_LINE_ENDS = re.compile(rb"\r\n|\r|\n")
_ANOTHER_RULE = b"Disallow: /another-line-of-this-file"


class Opinions(NamedTuple):
    """Two verdicts on one URL."""

    allowed: bool
    rule: str  # what decides, as its owner wrote it or in our words; "" when no rule matches
    line: int  # where it stands, from 1; 0 when no single line decides
    protego: bool | None  # whether Protego allows it; None when it was not asked

    @property
    def differ(self) -> bool:
        """Whether Protego says otherwise."""
        return self.protego is not None and self.protego != self.allowed

    def text(self) -> str:
        """In one line, for people."""
        rule = self.rule or "no rule matches"
        at = f" (line {self.line})" if self.line else ""
        second = f"{'allows' if self.protego else 'forbids'} it {'all the same' if self.differ else 'too'}"
        if self.protego is None:
            second = "is not asked, its time for these wildcards has no bound"
        return f"{'allowed' if self.allowed else 'forbidden'}: {rule}{at}; Protego {second}"

    def values(self) -> dict[str, object]:
        """For programs."""
        return {
            "robots_allowed": self.allowed,
            "robots_rule": self.rule or None,
            "robots_line": self.line or None,
            "protego_allowed": self.protego,
        }


def opinions(body: bytes, token: str, url: str) -> Opinions:
    """Ask both about ``url`` as the crawler of this product token."""
    body = body[:KEPT_BYTES]
    allowed = parse_robots(body, token).allowed(url)
    rule = deciding_rule(body, token, url)
    words = refusing_line(body, token, url)
    if rule is not None and rule.allow == allowed:
        words = f"{'Allow' if rule.allow else 'Disallow'}: {rule.pattern}"
        return Opinions(allowed, words, _line_of(body, token, rule), _protego(body, token, url))
    return Opinions(allowed, words, 0, _protego(body, token, url))


def _line_of(body: bytes, token: str, rule: Rule) -> int:
    """The first line that gives this rule to the token: of equal lines that of a group which names it."""
    lines = _LINE_ENDS.split(body)
    equal = [
        place
        for place, line in enumerate(lines)
        if b":" in line and read_robots_text(b"User-agent: *\n" + line, token).rules == (rule,)
    ]
    for place in equal:
        alone = [_ANOTHER_RULE if other in equal and other != place else line for other, line in enumerate(lines)]
        if rule in read_robots_text(b"\n".join(alone), token).rules:
            return place + 1
    return 0


def _protego(body: bytes, token: str, url: str) -> bool | None:
    from protego import Protego  # nothing but these questions needs it

    rules = read_robots_text(body, token).rules
    if sum(min(len(url), 1000) ** rule.pattern.count("*") for rule in rules if "*" in rule.pattern) > _MOST_STEPS:
        return None
    return bool(Protego.parse(body.decode("utf-8-sig", "ignore")).can_fetch(url, token))


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HOPS = 5  # RFC 9309 2.3.1.2


class RobotsVersion(NamedTuple):
    """One text of a robots.txt, and since when it was so."""

    since: datetime  # UTC
    origin: str
    body: bytes  # decoded
    place: str  # where it stands: file and byte, or a copy's path

    @property
    def moment(self) -> str:
        """For people."""
        return f"{self.since:%Y-%m-%d %H:%M:%S} UTC"


def robots_versions(folders: Sequence[CrawlDir], origin: str) -> list[RobotsVersion]:
    """Every version that the crawl in ``folders`` has met, oldest first. One whose archive is away is left out."""
    found = [*_archived(Captures(folders), origin), *(copy for folder in folders for copy in _copies(folder, origin))]
    versions: list[RobotsVersion] = []
    for version in sorted(found):
        if not versions or versions[-1].body != version.body:
            versions.append(version)
    return versions


def then_and_now(
    folders: Sequence[CrawlDir], origins: Iterable[str], then: datetime | None
) -> tuple[list[RobotsVersion], list[RobotsVersion]]:
    """Of each origin that has one: the version that held at a moment (the first, where that came later), the newest."""
    held, newest = [], []
    for origin in origins:
        if versions := robots_versions(folders, origin):
            before = [version for version in versions if then is not None and version.since <= then]
            held.append(before[-1] if before else versions[0])
            newest.append(versions[-1])
    return held, newest


def _archived(captures: Captures, origin: str) -> Iterator[RobotsVersion]:
    digest = ""
    for asked in captures.of_url(url := f"{origin}/robots.txt"):
        with suppress(OperatorError):
            answer = _answer(captures, asked) if asked.row.url == url else None
            if answer is None or answer.row.digest == digest:
                continue
            body = archived_body(captures, answer)
            digest = answer.row.digest
            if archived_robots_wall(captures.record(answer).head, body, answer.row.url):
                continue
            since = datetime.strptime(answer.row.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            yield RobotsVersion(since, origin, body, f"{answer.filename} at byte {answer.row.offset}")


def _answer(captures: Captures, asked: IndexedCapture) -> IndexedCapture | None:
    """The file that a request for a robots.txt led to; None when there was none, or it is not in these folders."""
    for _ in range(_HOPS + 1):
        if asked.row.status == 200:
            return asked
        if asked.row.status not in _REDIRECTS:
            return None
        head = dict(header_pairs(captures.record(asked).head))
        named = next((value for name, value in head.items() if name.lower() == "location"), "")
        target = Base(asked.row.url).join(url_in_header(named.encode("latin-1")))
        if target is None:
            return None
        later = (found for found in captures.of_url(target.url) if found.row.timestamp >= asked.row.timestamp)
        following = next((found for found in later if found.row.url == target.url), None)
        if following is None:
            return None
        asked = following
    return None


def _copies(folder: CrawlDir, origin: str) -> Iterator[RobotsVersion]:
    shard = sha1(origin.encode(), usedforsecurity=False).hexdigest()[:2]
    home = folder.robots_copies / shard / quote(origin.replace("://", "_"), safe="")
    for path in sorted(home.glob("*.txt")):
        with suppress(ValueError):  # not one of ours
            since = datetime.strptime(path.name.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            yield RobotsVersion(since, origin, path.read_bytes(), str(path))
