"""Which addresses names have, asked before a crawl: from the hosts file alone, or from the DNS as well."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING

from crawlerproject.config.values import list_of
from crawlerproject.errors import FetchError
from crawlerproject.fetch.hosts_file import HostsFile
from crawlerproject.fetch.resolver import Resolver

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def known_addresses(names: Iterable[str], settings: BaseSettings) -> dict[str, str]:
    """The address of each name that is one itself or stands in FETCH_HOSTS_FILE, without a question to the DNS."""
    hosts = HostsFile(settings.get("FETCH_HOSTS_FILE"))
    return _spread({name: _literal(name) or hosts.addresses(_plain(name), 0.0) for name in names})


def resolved_addresses(names: Iterable[str], settings: BaseSettings) -> dict[str, str]:
    """As ``known_addresses``, and what the DNS says, at FETCH_DNS_MAX_PER_SECOND; names that have none are left out."""
    return _spread(asyncio.run(_resolve(list(names), settings)))


async def _resolve(names: Sequence[str], settings: BaseSettings) -> dict[str, Sequence[str]]:
    resolver = Resolver(
        settings.get("FETCH_HOSTS_FILE"),
        list_of(settings, "FETCH_DNS_SERVERS"),
        timeout_seconds=settings.getfloat("FETCH_DNS_TIMEOUT_SECONDS"),
        max_per_second=settings.getfloat("FETCH_DNS_MAX_PER_SECOND"),
    )
    found: dict[str, Sequence[str]] = {}

    async def ask(name: str) -> None:
        try:
            found[name] = (await resolver.resolve(_plain(name))).addresses
        except FetchError:
            found[name] = ()

    waiting = list(names)
    try:
        while waiting:
            some = max(1, resolver.room())
            await asyncio.gather(*map(ask, waiting[:some]))
            del waiting[:some]
    finally:
        await resolver.close()
    return found


def _spread(addresses: dict[str, Sequence[str]]) -> dict[str, str]:
    """One address a name: of several the one with the fewest names so far, as the crawl itself chooses."""
    names_at: Counter[str] = Counter()
    chosen: dict[str, str] = {}
    for name, several in addresses.items():
        if several:
            chosen[name] = min(several, key=names_at.__getitem__)
            names_at[chosen[name]] += 1
    return chosen


def _plain(name: str) -> str:
    return name.strip("[]")


def _literal(name: str) -> Sequence[str]:
    if not (name[-1:].isdigit() or ":" in name):
        return ()
    try:
        return (str(ip_address(_plain(name))),)
    except ValueError:
        return ()
