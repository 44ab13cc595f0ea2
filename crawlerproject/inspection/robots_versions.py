"""Which robots.txt of an origin was in force when, by the index and the archive: each version once, with its text.

Crawls of 1.7 and before kept a copy of each version as ``log/robots/XX/ORIGIN/TIME-SHA1.txt``; these are read as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha1
from typing import NamedTuple
from urllib.parse import quote

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import archived_body
from crawlerproject.rules.archive.http_messages import header_pairs
from crawlerproject.rules.url.urls import Base
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture
from crawlerproject.stores.crawl_dir import CrawlDir

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
        location = next((value for name, value in head.items() if name.lower() == "location"), "")
        target = Base(asked.row.url).join(location)
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
