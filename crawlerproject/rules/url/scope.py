"""Decides whether a URL belongs to the crawl: by the seeds' hosts, domains or paths, patterns, depth and length."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol, get_args
from urllib.parse import unquote

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.domains import bounded_domain, registered_domain
from crawlerproject.rules.url.seeds import Glob, Places, SeedRule, first_match
from crawlerproject.rules.url.urls import host_key

Mode = Literal["any", "domain", "host", "path"]

# DESIGN section 4: bounds against endless sites.
DEFAULT_MAX_DEPTH = 20
DEFAULT_MAX_URL_LENGTH = 2000
# Seeds whose patterns keep a URL out that ``why`` names.
_NAMED = 3
# Hosts of addresses within a query, and SAML's request, which says in its own way where the visitor came from.
_NAMED_HOST = re.compile(r"://([^/?#&:\s]{1,253})")
_SAML = "samlrequest="


class ScopedUrl(Protocol):
    """What of an address matters here."""

    @property
    def url(self) -> str: ...

    @property
    def host(self) -> str: ...


def comes_back(url: str, target: str) -> bool:
    """Whether a redirect from ``url`` is no move: it goes to a login, a consent or the like that is to send us back.

    Such a target names in its query an address of the domain that it was reached from, or carries a SAML request.
    """
    query = unquote(unquote(target.partition("?")[2])).lower()
    if query.startswith(_SAML) or f"&{_SAML}" in query:
        return True
    home = bounded_domain(host_key(url))
    return any(bounded_domain(name) == home for name in _NAMED_HOST.findall(query))


class Patterns(NamedTuple):
    """What an operator says of a crawl beside its mode."""

    include: tuple[Glob, ...] = ()  # a link must match one of them, if there is any
    exclude: tuple[Glob, ...] = ()  # and none of these
    seeds: tuple[SeedRule, ...] = ()  # of places whose seeds have options; with mode ``path`` all seeds


class Scope:
    """What belongs to one crawl. ``mode``: ``any`` host, the seeds' ``domain``s, exactly the seeds' ``host``s, or what
    lies below the seeds' ``path``s.

    A host with a seed that has options of its own is governed by its seeds: a URL there belongs to the crawl when one
    of them takes it in. The other hosts are as ``mode`` says.
    """

    def __init__(
        self,
        mode: str,
        seed_hosts: Iterable[str] = (),
        *,
        max_depth: int = DEFAULT_MAX_DEPTH,
        max_url_length: int = DEFAULT_MAX_URL_LENGTH,
        patterns: Patterns | None = None,
    ) -> None:
        """``seed_hosts`` are host keys; ``max_depth`` counts links from a seed, ``max_url_length`` characters."""
        if mode not in get_args(Mode):
            raise ValueError(f"scope must be one of {', '.join(get_args(Mode))}, not {mode!r}")
        self.mode = mode
        self.max_depth = max_depth
        self.max_url_length = max_url_length
        hosts = frozenset(seed_hosts)
        self._patterns = patterns or Patterns()
        self._by_host: dict[str, Places] = {}
        self._by_domain: dict[str, Places] = {}
        # Whether more than hosts is chosen; what was queued before a pattern was added is judged again then.
        self.choosy = bool(self._patterns.include or self._patterns.exclude)
        for rule in self._patterns.seeds:
            self.govern(rule)
        self._inside = frozenset(map(registered_domain, hosts)) if mode == "domain" else hosts

    def widen(self, host: str) -> bool:
        """A seed has moved to ``host``, so that its place belongs to the crawl as well; True when it did not before."""
        if self.mode == "path":
            return False  # ``move`` says which part of the host
        place = registered_domain(host) if self.mode == "domain" else host
        if self.mode == "any" or place in self._inside:
            return False
        self._inside |= {place}
        return True

    def move(self, seed_url: str, url: str) -> bool:
        """A seed whose place has rules was redirected to ``url``: they hold there too; True when that is new."""
        host, places = host_key(url), self._governing(host_key(seed_url))
        if places is None or not host:
            return False
        known = self._governing(host)
        if known is not None and known.takes(url):
            return False
        moved = [rule.moved(host, url) for rule in places.of(seed_url) if not rule.refusal(seed_url)]
        changed = [self.govern(rule) for rule in moved]
        return any(changed)

    def governs(self, host: str) -> bool:
        """Whether seeds with rules of their own say what of the host belongs to the crawl."""
        return self._governing(host) is not None

    def refusal(self, address: ScopedUrl, depth: int, *, is_list: bool = False) -> Reason | None:
        """Why the address does not belong to the crawl; None when it does. ``is_list``: it is a sitemap."""
        if depth > self.max_depth:
            return Reason.DEPTH
        if len(address.url) > self.max_url_length:
            return Reason.URL_LENGTH
        if not self.choosy:
            return None if self.mode == "any" else self._mode_refusal(address.host)
        return self.place_refusal(address, is_list=is_list)

    def place_refusal(self, address: ScopedUrl, *, is_list: bool = False) -> Reason | None:
        """The part of ``refusal`` that is about hosts, paths and patterns."""
        places = self._governing(address.host)
        if is_list:  # it lies where its site has it, and names pages, each of which is judged
            return None if places is not None else self._mode_refusal(address.host)
        url, (include, exclude, _) = address.url, self._patterns
        if (exclude and first_match(exclude, url)) or (include and not first_match(include, url)):
            return Reason.SCOPE
        if places is None:
            return self._mode_refusal(address.host)
        return None if places.takes(url) else Reason.SCOPE

    def excludes(self, url: str) -> bool:
        """Whether a pattern of the operator's keeps a URL out whatever it is for."""
        return bool(self._patterns.exclude) and bool(first_match(self._patterns.exclude, url))

    def why(self, address: ScopedUrl) -> str:
        """What of mode, patterns and seeds keeps the address out, in words; "" when nothing does."""
        if self.place_refusal(address) is None:
            return ""
        include, exclude, _ = self._patterns
        if (found := first_match(exclude, address.url)) is not None:
            return f"-a exclude={found.text}"
        if include and not first_match(include, address.url):
            return f"no pattern of -a include= matches: {' '.join(pattern.text for pattern in include)}"
        if (places := self._governing(address.host)) is not None:
            said = [rule.refusal(address.url) for rule in places.of(address.url)]
            return (
                "; ".join(said[:_NAMED])
                if said
                else f"below none of the seeds' paths there: {' '.join(places.prefixes())}"
            )
        return f"-a scope={self.mode}: not of the seeds' {self.mode}s"

    def _mode_refusal(self, host: str) -> Reason | None:
        if self.mode == "any":
            return None
        place = registered_domain(host) if self.mode == "domain" else host
        return None if place in self._inside and self.mode != "path" else Reason.SCOPE

    def govern(self, rule: SeedRule) -> bool:
        """Take in a seed with rules of its own; whether that changes anything."""
        self.choosy = True
        scope = rule.scope or self.mode
        if scope == "domain":
            self._by_domain.setdefault(registered_domain(rule.host), Places()).add(rule, scope)
        return self._by_host.setdefault(rule.host, Places()).add(rule, scope)

    def _governing(self, host: str) -> Places | None:
        """The places of seeds with rules at a host, or at its domain."""
        places = self._by_host.get(host)
        if places is None and self._by_domain:
            places = self._by_domain.get(registered_domain(host))
        return places
