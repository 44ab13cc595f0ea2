"""Which addresses a name has, and to which of them we may connect: the hosts file first, then the DNS."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from ipaddress import ip_address
from socket import AF_INET, inet_pton
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlerproject.config.values import list_of
from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import QuestionRate
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.runtime.clock import steady
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from crawlerproject.fetch.dns_servers import DnsServers

TIMEOUT_SECONDS = 10.0
"""For one look-up with its repetitions, without what it waits for by FETCH_DNS_MAX_PER_SECOND (ours)."""

MIN_TTL_SECONDS = 60.0
"""A shorter TTL is for load balancing between browsers; a crawler with a delay would look up every page."""

MAX_TTL_SECONDS = 86_400.0
"""RFC 8767 advises to cap TTLs at days; one day keeps a moved site's loss small."""

MAX_NAMES = 200_000
"""Cached names, oldest out first; about 60 MB when full."""

OF_PROXIED_SECONDS = 1.0
"""A name that a proxy resolves is looked up for so long: where there is no DNS each host would wait for a time-out."""

UNNAMED = frozenset({Reason.DNS_NOT_FOUND, Reason.DNS_FAILED})
"""A name that could not be looked up. A proxy may know it all the same."""

_NEGATIVE_TTL_SECONDS = 60.0  # ours: a name that is being set up is found within a minute

_MOST_NAMES = 10  # of one address of ours that are looked at (ours)

_LOOK_SECONDS = 1.0
"""How often the file's time is looked at: a stat a second costs nothing, one a request would."""

MISSING = (0, 0, 0)


class HostsFile:
    """Names to addresses; IPv4 first. A file that is missing is empty."""

    def __init__(self, path: str) -> None:
        """Read it. Raises OperatorError when it cannot be read; later on the names that were read stay."""
        self._path = path
        self._names: dict[str, tuple[str, ...]] = {}
        self._stamp = MISSING
        self._look_at = 0.0
        try:
            self._read_if_changed()
        except OSError as error:
            raise OperatorError(f"FETCH_HOSTS_FILE {path!r} cannot be read: {error.strerror}") from error

    def addresses(self, name: str, now: float) -> tuple[str, ...]:
        """The name's addresses (lower case, no final dot), () when it is not listed. ``now`` is epoch seconds."""
        if now >= self._look_at or now < self._look_at - _LOOK_SECONDS:  # the second: the clock was set back
            self._look_at = now + _LOOK_SECONDS
            with contextlib.suppress(OSError):  # a name that was listed a moment ago has not ceased to exist
                self._read_if_changed()
        return self._names.get(name, ())

    def _read_if_changed(self) -> None:
        try:
            status = os.stat(self._path)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp == self._stamp:
                return
            with open(self._path, encoding="utf-8", errors="replace") as file:
                names = parse_hosts(file.read())
        except (FileNotFoundError, NotADirectoryError):
            stamp, names = MISSING, {}
        self._stamp, self._names = stamp, names


def parse_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """``address name [alias ...]`` a line, ``#`` comments; lines that are neither are passed over."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2:
            continue
        address = ip_of(words[0])
        if not address:
            continue
        for name in words[1:]:
            addresses = found.setdefault(name.lower().rstrip("."), [])
            if address not in addresses:
                addresses.append(address)
    return {name: tuple(sorted(listed, key=lambda address: ":" in address)) for name, listed in found.items()}


def ip_of(word: str) -> str:
    """The word as an IP address is usually written; "" when it is not one."""
    try:
        if ":" not in word:
            inet_pton(AF_INET, word)  # an eighth of what ip_address takes, and there may be a hundred thousand lines
            return word
        return str(ip_address(word))
    except (OSError, ValueError):
        return ""


class Resolved(NamedTuple):
    """Addresses a name may be fetched from, and until when (epoch seconds) that holds."""

    addresses: tuple[str, ...]
    expires_at: float


class _Failure(NamedTuple):
    reason: Reason
    detail: str
    expires_at: float


class Resolver:
    """Look-ups with a cache; concurrent ones for a name share one question.

    ``rules`` None lets every address pass, for a proxy that the operator chose. ``clock`` gives epoch seconds.
    """

    def __init__(
        self,
        hosts_file: str,
        servers: Sequence[str] = (),
        rules: AddressRules | None = None,
        *,
        timeout_seconds: float,
        max_per_second: float,
        clock: Callable[[], float] = steady,
    ) -> None:
        self._hosts = HostsFile(hosts_file)
        self._servers = tuple(servers)
        self._rules = rules
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._rate = QuestionRate(max_per_second)
        self._known: dict[str, Resolved | _Failure] = {}
        self._asking: dict[str, asyncio.Task[Resolved | _Failure]] = {}
        self._dns: DnsServers | None = None
        self._sent = 0  # datagrams
        self._failed: Counter[str] = Counter()

    def counts(self) -> dict[str, Any]:
        """Datagrams to servers since the start, look-ups that failed by reason, and how many names are known now."""
        return {"questions": self._sent, "failures": dict(self._failed), "names": len(self._known)}

    def at_hand(self, name: str) -> Resolved | None:
        """The allowed addresses as far as they are known now; None when that needs a question. Raises FetchError."""
        answer = self._answer_at_once(name.lower().rstrip("."))
        if isinstance(answer, _Failure):
            raise FetchError(answer.reason, answer.detail)
        return answer

    def room(self) -> int:
        """For how many more look-ups a question may be sent now; those of ``resolve`` wait for theirs."""
        return self._rate.room(self._clock())

    async def resolve(self, name: str, within_seconds: float | None = None) -> Resolved:
        """The allowed addresses of a host name or IP literal.

        Raises FetchError: DNS_NOT_FOUND, DNS_FAILED (also when nothing is known ``within_seconds``; the question goes
        on), or PRIVATE_ADDRESS when every address is refused.
        """
        name = name.lower().rstrip(".")
        answer = self._answer_at_once(name)
        if answer is None:
            task = self._asking.get(name)
            if task is None:
                task = self._asking[name] = asyncio.get_running_loop().create_task(self._ask(name))
            try:
                async with asyncio.timeout(within_seconds):
                    answer = await asyncio.shield(task)  # one asker's end is not the others'
            except TimeoutError:
                raise FetchError(Reason.DNS_FAILED, f"no answer in {within_seconds:g} s") from None
        if isinstance(answer, _Failure):
            raise FetchError(answer.reason, answer.detail)
        return answer

    async def close(self) -> None:
        """Give up all questions."""
        for task in list(self._asking.values()):
            task.cancel()
        self._asking.clear()
        if self._dns is not None:
            await self._dns.close()
            self._dns = None

    def _answer_at_once(self, name: str) -> Resolved | _Failure | None:
        now = self._clock()
        if listed := self._hosts.addresses(name, now):
            return self._allowed(name, listed, now + MIN_TTL_SECONDS)
        known = self._known.get(name)
        if known is not None and known.expires_at > now:
            return known
        if name[-1:].isdigit() or ":" in name:  # only then can it be an address
            literal = ip_of(name.strip("[]"))
            return self._allowed(name, (literal,), now + MAX_TTL_SECONDS) if literal else None
        return None

    def _allowed(self, name: str, addresses: tuple[str, ...], expires_at: float) -> Resolved | _Failure:
        if self._rules is not None:
            refuses = self._rules.refuses
            allowed = tuple(ip for ip in addresses if not refuses(ip))
            if not allowed:
                return _Failure(Reason.PRIVATE_ADDRESS, f"{name} is {', '.join(addresses[:3])}", expires_at)
            addresses = allowed
        return Resolved(addresses, expires_at)

    async def _ask(self, name: str) -> Resolved | _Failure:
        try:
            answer = await self._query(name)
        finally:
            self._asking.pop(name, None)
        self._known.pop(name, None)
        if len(self._known) >= MAX_NAMES:
            del self._known[next(iter(self._known))]
        self._known[name] = answer
        return answer

    async def _query(self, name: str) -> Resolved | _Failure:
        if not name or len(name) > 253:  # RFC 1035 2.3.4
            return self._failure(Reason.DNS_NOT_FOUND, "not a host name")
        from crawlerproject.fetch.dns_servers import DnsServers, NoAnswer  # no crawl of addresses alone pays for it

        if self._dns is None:
            self._dns = DnsServers(self._servers, self._timeout_seconds)
        try:
            async with asyncio.timeout(self._timeout_seconds) as limit:

                async def may_send() -> None:  # time in our own line does not count against the servers
                    self._sent += 1
                    if (wait_seconds := self._rate.ask(self._clock())) > 0:
                        limit.reschedule((limit.when() or 0.0) + wait_seconds)
                        await asyncio.sleep(wait_seconds)

                addresses, ttl_seconds = await self._dns.addresses(name, "A", may_send)
                if not addresses:
                    addresses, ttl_seconds = await self._dns.addresses(name, "AAAA", may_send)
        except TimeoutError:
            return self._failure(Reason.DNS_FAILED, f"no answer in {self._timeout_seconds:g} s")
        except NoAnswer as error:
            return self._failure(Reason.DNS_NOT_FOUND if error.wrong_name else Reason.DNS_FAILED, error.detail)
        if not addresses:
            return self._failure(Reason.DNS_NOT_FOUND, "the name has no address")
        ttl_seconds = min(max(ttl_seconds, MIN_TTL_SECONDS), MAX_TTL_SECONDS)
        return self._allowed(name, addresses, self._clock() + ttl_seconds)

    def _failure(self, reason: Reason, detail: str) -> _Failure:
        self._failed[str(reason)] += 1
        return _Failure(reason, detail, self._clock() + _NEGATIVE_TTL_SECONDS)


def resolver_for(crawler: Crawler) -> Resolver:
    """The crawler's one resolver; scheduler and download handler share its cache."""
    return services_of(crawler).once(Resolver, lambda: make_resolver(crawler.settings, address_rules(crawler)))


def address_rules(crawler: Crawler) -> AddressRules:
    """The rules of FETCH_ALLOW_NETWORKS; raises OperatorError when one entry is no network."""
    try:
        return AddressRules(list_of(crawler.settings, "FETCH_ALLOW_NETWORKS"))
    except ValueError as error:
        raise OperatorError(f"FETCH_ALLOW_NETWORKS must list networks like 10.0.0.0/8: {error}") from error


def make_resolver(settings: BaseSettings, rules: AddressRules | None) -> Resolver:
    """By the FETCH_* settings; ``rules`` None: any address."""
    return Resolver(
        settings.get("FETCH_HOSTS_FILE"),
        list_of(settings, "FETCH_DNS_SERVERS"),
        rules,
        timeout_seconds=settings.getfloat("FETCH_DNS_TIMEOUT_SECONDS", TIMEOUT_SECONDS),
        max_per_second=settings.getfloat("FETCH_DNS_MAX_PER_SECOND"),
    )


def known_addresses(names: Iterable[str], settings: BaseSettings) -> dict[str, str]:
    """The address of each name that is one itself or stands in FETCH_HOSTS_FILE, without a question to the DNS."""
    hosts = HostsFile(settings.get("FETCH_HOSTS_FILE"))
    found: dict[str, Sequence[str]] = {}
    for name in map(str, names):
        address = ip_of(name.strip("[]"))
        found[name] = (address,) if address else hosts.addresses(name.strip("[]"), 0.0)
    return _spread(found)


def resolved_addresses(names: Iterable[str], settings: BaseSettings) -> dict[str, str]:
    """The address of each name by the DNS too, asked at FETCH_DNS_MAX_PER_SECOND; names without one are left out."""
    found: dict[str, Sequence[str]] = {}

    async def resolve_all() -> None:
        resolver = make_resolver(settings, None)

        async def resolve(name: str) -> None:
            with contextlib.suppress(FetchError):
                found[name] = (await resolver.resolve(name.strip("[]"))).addresses

        waiting = list(names)
        try:
            while waiting:
                some = max(1, resolver.room())
                await asyncio.gather(*map(resolve, waiting[:some]))
                del waiting[:some]
        finally:
            await resolver.close()

    asyncio.run(resolve_all())
    return _spread(found)


def names_confirmed(addresses: Iterable[str], settings: BaseSettings) -> dict[str, dict[str, bool]]:
    """The names of each address by the DNS, and whether they lead back to it (forward-confirmed reverse DNS).

    Asks FETCH_DNS_SERVERS, one question at a time; no name where there is no answer. Blocking.
    """
    found: dict[str, dict[str, bool]] = {}

    async def ask_all() -> None:
        from crawlerproject.fetch.dns_servers import DnsServers, NoAnswer

        servers = DnsServers(list_of(settings, "FETCH_DNS_SERVERS"), TIMEOUT_SECONDS)

        async def ask(name: str, kind: str) -> tuple[str, ...]:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    return (await servers.addresses(name, kind, lambda: asyncio.sleep(0)))[0]
            except (NoAnswer, TimeoutError):
                return ()

        try:
            for address in addresses:
                kind = "AAAA" if ":" in address else "A"
                names = await ask(ip_address(address).reverse_pointer, "PTR")
                found[address] = {name: address in map(ip_of, await ask(name, kind)) for name in names[:_MOST_NAMES]}
        finally:
            await servers.close()

    asyncio.run(ask_all())
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
