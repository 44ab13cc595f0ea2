"""Decides whether a URL belongs to the crawl: by the seeds' hosts or domains, its depth and its length."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from crawlerproject.reasons import Reason
from crawlerproject.rules.hosts import host_name

if TYPE_CHECKING:
    from tldextract import TLDExtract

Mode = Literal["any", "domain", "host"]

# DESIGN section 4: bounds against endless sites.
DEFAULT_MAX_DEPTH = 20
DEFAULT_MAX_URL_LENGTH = 2000
# Host names whose domain is kept at hand; a crawl meets the same hosts again and again.
_KEPT = 65_536


class Target(Protocol):
    """What of an address matters here."""

    @property
    def url(self) -> str: ...

    @property
    def host(self) -> str: ...


@lru_cache(maxsize=_KEPT)
def registered_domain(host: str) -> str:
    """The registrable domain of a host key ("a.b.example.co.uk:81" is "example.co.uk"); IP addresses, and
    names without one (localhost, a bare suffix), are their own."""
    name = host_name(host)
    if name.startswith("["):
        return name
    return _suffix_list()(name).top_domain_under_public_suffix or name


def is_public_suffix(name: str) -> bool:
    """Whether others register domains below this host name: "com", "co.uk", and private ones as "github.io"."""
    return _suffix_list()(name).suffix == name


@lru_cache(maxsize=_KEPT)
def bounded_domain(host: str) -> str:
    """As ``registered_domain``, but of names below a suffix that the list does not know (a newer one, a private
    network's) the last two labels, as the list's rule "*" has it: what one owner can fill with names."""
    name = host_name(host)
    domain = registered_domain(host)
    if domain != name or name.startswith("[") or name.count(".") < 2 or name[-1:].isdigit():
        return domain
    return domain if _suffix_list()(name).suffix else ".".join(name.rsplit(".", 2)[1:])


@cache
def _suffix_list() -> TLDExtract:
    """The public suffix list as bundled with tldextract: no network.

    Private domains count (github.io), so that two people's sites under one provider are two domains.
    """
    import tldextract  # and with it requests, for a download that we do not make: not before it is needed

    return tldextract.TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


class Scope:
    """What belongs to one crawl. ``mode``: ``any`` host, the seeds' ``domain``s, or exactly the seeds' ``host``s."""

    def __init__(
        self,
        mode: str,
        seed_hosts: Iterable[str] = (),
        *,
        max_depth: int = DEFAULT_MAX_DEPTH,
        max_url_length: int = DEFAULT_MAX_URL_LENGTH,
    ) -> None:
        """``seed_hosts`` are host keys; ``max_depth`` counts links from a seed, ``max_url_length`` characters."""
        if mode not in get_args(Mode):
            raise ValueError(f"scope must be one of {', '.join(get_args(Mode))}, not {mode!r}")
        self.mode = mode
        self.max_depth = max_depth
        self.max_url_length = max_url_length
        hosts = frozenset(seed_hosts)
        self._inside = frozenset(map(registered_domain, hosts)) if mode == "domain" else hosts

    def widen(self, host: str) -> bool:
        """A seed has moved to ``host``, so that its place belongs to the crawl as well; True when it did not before."""
        place = registered_domain(host) if self.mode == "domain" else host
        if self.mode == "any" or place in self._inside:
            return False
        self._inside |= {place}
        return True

    def refusal(self, address: Target, depth: int) -> Reason | None:
        """Why the address does not belong to the crawl; None when it does."""
        if depth > self.max_depth:
            return Reason.DEPTH
        if len(address.url) > self.max_url_length:
            return Reason.URL_LENGTH
        if self.mode == "any":
            return None
        place = address.host if self.mode == "host" else registered_domain(address.host)
        return None if place in self._inside else Reason.SCOPE
