"""What the synthetic web consists of, and which of its addresses a polite crawler archives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from urllib.parse import urlsplit


class Fate(Enum):
    """What a correct crawler does with a page that it reaches."""

    MUST = "must"  # archived exactly once
    MAY = "may"  # an answer so broken, or so endless, that archiving it is a matter of taste


class Answer(NamedTuple):
    """The exact bytes of one response and how they are sent."""

    status: int  # for the server's log; 0 when the bytes are no HTTP
    pieces: tuple[bytes, ...]  # written one after the other
    wait_seconds: float = 0.0  # before the first byte
    gap_seconds: float = 0.0  # between pieces
    close: bool = False  # the server ends the connection after the last byte
    rest_seconds: float = 0.0  # what the answer's Retry-After asks for, for the judge
    dated: bool = False  # it asks by a date, which is put in when the answer is sent


class Page(NamedTuple):
    """One path of a site: its answer, and the links that a polite crawler follows."""

    answer: Answer
    links: tuple[str, ...] = ()  # absolute, without fragment
    fate: Fate = Fate.MUST
    first: tuple[Answer, ...] = ()  # what the first requests get instead, one each


@dataclass(slots=True)
class Site:
    """One host name and all that it serves."""

    host: str
    ip: str
    pages: dict[str, Page] = field(default_factory=dict)
    disallow: tuple[str, ...] = ()  # path prefixes that its robots.txt forbids
    endless: Callable[[str], Answer | None] | None = None  # answers for paths that ``pages`` lacks
    dynamic: Callable[[str, bytes], Answer | None] | None = None  # asked first, with path and request head
    floor_seconds: float = 0.0  # the pause that its robots.txt asks for
    more_ips: tuple[str, ...] = ()  # further addresses of the name
    reachable: bool = True  # False: a correct crawler gets no page of it (robots.txt is down)


@dataclass(slots=True)
class World:
    """All sites, where to begin, and what must never be asked for."""

    port: int
    sites: dict[str, Site] = field(default_factory=dict)
    seeds: list[str] = field(default_factory=list)
    nevercrawl: set[str] = field(default_factory=set)  # domains; their subdomains are meant as well
    shunned: set[str] = field(default_factory=set)  # linked, but not to be followed (nofollow, extensions, ...)
    aliases: list[frozenset[str]] = field(default_factory=list)  # spellings of one page: exactly one is archived
    extra: list[str] = field(default_factory=list)  # may be archived though no link leads there (moved robots.txt)

    def site(self, host: str, ip: str = "") -> Site:
        """Add a site; without ``ip`` it gets the next address of 127/8 for itself."""
        made = Site(host, ip or self._next_ip())
        self.sites[host] = made
        return made

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def _next_ip(self) -> str:
        number = len(self.sites) + 0x0100  # 127.0.1.0 upwards: leaves 127.0.0.x to the machine's own services
        return f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def hosts_file(self) -> str:
        """The hosts(5) file that makes the names known."""
        return "".join(f"{ip}\t{site.host}\n" for site in self.sites.values() for ip in (site.ip, *site.more_ips))

    def permits(self, url: str) -> bool:
        """Whether a polite crawler may ask for ``url`` at all (nofollow is a property of links, not looked at)."""
        parts = urlsplit(url)
        site = self.sites.get(parts.hostname or "")
        if parts.scheme != "http" or site is None or parts.port != self.port or not site.reachable:
            return False
        if any(site.host == domain or site.host.endswith("." + domain) for domain in self.nevercrawl):
            return False
        return not any(_path(url).startswith(prefix) for prefix in site.disallow)

    def page(self, url: str) -> Page | None:
        """The page at ``url``; None when the server would answer 404, or endlessly."""
        site = self.sites.get(urlsplit(url).hostname or "")
        return site.pages.get(_path(url)) if site else None

    def reach(self) -> dict[str, Fate]:
        """Every permitted address that links reach from the seeds, robots.txt files left out."""
        known: dict[str, Fate] = {}
        waiting = deque(self._plain(self.seeds))
        while waiting:
            url = waiting.popleft()
            if url in known or not self.permits(url):
                continue
            page = self.page(url)
            known[url] = page.fate if page else self._unlisted(url)
            waiting.extend(self._plain(page.links if page else ()))
        return known

    def expected(self) -> set[str]:
        """The addresses that must be archived, each exactly once; aliases are left out, see ``aliases``."""
        spellings = {url for group in self.aliases for url in group}
        return {url for url, fate in self.reach().items() if fate is Fate.MUST and url not in spellings}

    def forbidden(self) -> set[str]:
        """The addresses that some page links to but that must never be asked for."""
        reached = self.reach()
        linked = {link for site in self.sites.values() for page in site.pages.values() for link in page.links}
        refused = {link for link in self._plain(linked) if not self.permits(link)}
        return {url for url in self.shunned | refused if url not in reached}

    def _unlisted(self, url: str) -> Fate:
        site = self.sites[urlsplit(url).hostname or ""]
        return Fate.MAY if site.endless else Fate.MUST  # a 404 is an answer, and answers are archived

    def _plain(self, urls: Iterable[str]) -> list[str]:
        return sorted({url.split("#", 1)[0] for url in urls if url not in self.shunned})


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
