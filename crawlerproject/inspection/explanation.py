"""Why a URL or a host is in the state it is in: one word for the state, one for the reason, and the facts behind.

Answers from what the store holds and from the filters a new link would meet, so the same words come out while a crawl
runs and after it. Only the state ``leased`` needs the running process, which passes its open leases as ``leases``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from crawlerproject.frontier.hosts.host import Host, HostState
from crawlerproject.frontier.hosts.table import HostSuspensions
from crawlerproject.frontier.learned.models import BadCertificate, stored_fact
from crawlerproject.frontier.learned.subscriptions import read_hubs
from crawlerproject.frontier.passage import DiscoveredUrl, caused_externally, linking_domain, of_other_domain
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.inspection.host_table import LEFT_ALONE, host_state, pace_source, stand_at_door
from crawlerproject.inspection.robots_opinions import opinions
from crawlerproject.inspection.url_state import Fact, State, UrlState, iso_moment, moment_fact
from crawlerproject.reasons import ANSWERED, RESERVED, Reason
from crawlerproject.rules.printable import counted, human_bytes, human_seconds, moment
from crawlerproject.rules.robots.parser import read_robots_text
from crawlerproject.rules.robots.policy import RobotsRecord, parse_robots, refusing_line
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, external_key, requisite_key
from crawlerproject.rules.traps.budgets import DomainHosts, NamedHosts
from crawlerproject.rules.url.domains import bounded_domain, registered_domain
from crawlerproject.rules.url.urls import Address, UrlRefused, host_key, host_name, key_of, parse, port_of
from crawlerproject.stores.protocols import FrontierReader, HostFact, PageRecord, QueuedPage

# Decided without asking the server for the page.
_REFUSALS = frozenset({
    Reason.NEVERCRAWL, Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.PRIVATE_ADDRESS, Reason.PACE_GUARD,
    Reason.HOST_PARKED, Reason.FOREIGN_ENTRY, Reason.RENDER_PACE, Reason.POISON, Reason.HUB_UNPROVEN,
    Reason.MIDDLEWARE, Reason.EXTENSION, Reason.SCOPE, Reason.DEPTH, Reason.URL_LENGTH, Reason.BUDGET, Reason.PAUSED,
    Reason.HOST_LIMIT, Reason.CRAWL_LIMIT, Reason.TRAP, Reason.EXTERNAL_BUDGET, Reason.EXTERNAL_DOOR,
    Reason.SITEMAP_BUDGET, Reason.REQUISITE_BUDGET, Reason.ROBOTS_REDIRECT, Reason.NOFOLLOW, Reason.INVALID_URL,
    Reason.SCHEME, *RESERVED, Reason.PAYMENT_REQUIRED,
    Reason.BAD_PORT, Reason.TOO_MANY_PORTS, Reason.TOO_MANY_HOSTS, Reason.TOO_MANY_NAMES,
})  # fmt: skip
# By words that are known before the page is asked for; of the last one it may have been the answer.
_BY_SITE = (Reason.RESERVED_ROBOTS, Reason.RESERVED_LICENSE, Reason.RESERVED_TDMREP, Reason.PAYMENT_REQUIRED)
_HELD_STATES = {Reason.PAUSED: HostState.PAUSED, Reason.HOST_LIMIT: HostState.LIMITED}


class QueueStore(FrontierReader, Protocol):
    """A store that also shows a whole queue."""

    def queue(self, host: str) -> Iterator[QueuedPage]: ...


@dataclass(slots=True, frozen=True)
class Via:
    """The page that links to the URL: its depth, and whether it asks that the link be not followed."""

    url: str
    depth: int
    nofollow: bool


class Stops(NamedTuple):
    """What the operator keeps from being asked: hosts, and, with the reason in words, the whole crawl."""

    holds: HostSuspensions
    halted: tuple[Reason, str] | None = None


class Why:
    """Answers for one moment; ``leases`` are the URLs that the running crawl has out now, by host."""

    def __init__(
        self,
        store: QueueStore,
        filters: UrlFilters,
        token: str,
        now: float,
        leases: Mapping[str, Mapping[str, Any]] | None = None,
        stops: Stops | None = None,
    ) -> None:
        self._store = store
        self._filters = filters
        self._token = token
        self._now = now
        self._leases = leases or {}
        self._holds, self._halted = stops or Stops(HostSuspensions())

    def url(self, text: str, via: Via | None = None) -> UrlState:
        """The state of one absolute URL."""
        try:
            address = parse(text)
        except UrlRefused as refused:
            return UrlState(text, State.REFUSED, refused.reason, {"rule": _SYNTAX[refused.reason]})
        excluded = self._excluded(host_name(address.host))
        host = address.host
        records = (self._store.page(key, host) for key in _keys(address))
        record = next((record for record in records if record is not None), None)
        row, place = self._row(address)
        answer = (
            self._queued(address, row, place) if row is not None
            else self._decided(address, record) if record is not None
            else self._unseen(address, via)
        )  # fmt: skip
        if row is not None and record is not None:
            at = iso_moment(record.fetched_at)
            answer.facts["before"] = Fact(
                f"{record.reason}, {moment(record.fetched_at)}", before_reason=record.reason, before_at=at
            )
        if (opinions := self._robots_opinions(address)) is not None:
            answer.facts["robots"] = opinions
        if excluded and answer.state != State.REFUSED:
            answer.facts["rule"] = excluded
            if row is not None:
                answer.state, answer.reason = State.REFUSED, Reason.NEVERCRAWL
        return answer

    def embedded(self, last: PageRecord, page: str) -> UrlState:
        """What became of a file that ``page`` wanted in the browser, of which no more is kept than log and capture."""
        answer = self._decided(parse(last.url), last)
        answer.facts["for"] = Fact(f"{page} in the browser", wanted_by=page)
        return answer

    def host(self, name: str) -> dict[str, Any]:
        """What is known of one host (its key: name, with the port when it is not the scheme's default)."""
        packed = self._store.host(name)
        waiting = next(self._store.queue(name), None)
        facts: dict[str, Any] = {"host": name, "state": "never-seen" if packed is None else ""}
        line = self._excluded(host_name(name))
        if line:
            facts["excluded"] = line
        if packed is None:
            if waiting is not None:
                facts["state"] = "free"
            if (held := self._held(Host(name, 0.0))) is not None:
                facts["held"] = held[1]
            return facts
        return facts | self._of_host(Host.unpack(name, packed), waiting)

    def _of_host(self, host: Host, waiting: QueuedPage | None) -> dict[str, Any]:
        name = host.name
        stand_at_door(host, waiting, self._now)
        facts: dict[str, Any] = {"state": host_state(host, self._now, leased=name in self._leases)}
        if (held := self._held(host)) is not None:
            facts |= {"state": _HELD_STATES.get(held[0], facts["state"]), "held": held[1]} if host.rows else {}
        facts |= self._clock(host)
        facts |= {
            "queued": host.rows,
            "fetched": host.fetched,
            "known": host.known,
            "budget": Fact(
                f"{host.known:,} of SCOPE_MAX_URLS_PER_HOST={self._filters.max_urls_per_host:,} URLs",
                max_urls=self._filters.max_urls_per_host,
            ),
            "failures": host.failures,
        }
        word, seen = stored_fact(self._store, HostFact.CERTIFICATE, BadCertificate, name)
        if word:
            facts["certificate"] = Fact(
                f"{word}, seen {moment(seen)}", certificate_error=word, certificate_seen_at=iso_moment(seen)
            )
        if (hub := read_hubs(self._store).get(host_name(name))) is not None:
            proven = f"proved to be one {moment(hub.proven_at)}" if hub.proven_at else "has not proved to be one"
            facts["hub"] = Fact(
                f"asked to push {moment(hub.asked_at)}, {proven}; {Reason.HUB_UNPROVEN} until then",
                hub_asked_at=iso_moment(hub.asked_at),
                hub_proven_at=iso_moment(hub.proven_at or 0.0),
            )
        if waiting is not None:
            facts["next"] = waiting.url
        for scheme in ("http", "https"):
            if (fact := self._robots_fact(host, scheme)) is not None:
                facts[f"robots_{scheme}"] = fact
        return facts

    # --- states ---------------------------------------------------------------------------------

    def _queued(self, address: Address, row: QueuedPage, place: int) -> UrlState:
        host = self._host(address.host)
        lease = self._leases.get(address.host)
        facts: dict[str, Any] = {"depth": row.depth, "via": row.via or None, "tries": row.tries}
        if named_by := linking_domain(row.host, row.via, row.flags, row.note):
            later = "" if address.is_front else ": it comes after what that names"
            facts["named_by"] = Fact(f"only {named_by}, not its own host{later}", named_by=named_by)
        if lease is not None and lease.get("url") == row.url:
            since = moment_fact("leased_at", lease.get("since") or 0.0)
            return UrlState(row.url, State.LEASED, "", {**facts, "since": since, "ip": lease.get("address")})
        facts |= {"place": place, "before_it": place - 1, **self._clock(host)}
        scheme = address.scheme
        if (held := self._held(host)) is not None:
            facts["rule"] = held[1]
            return UrlState(row.url, State.WAITING, held[0], facts)
        if host.state is HostState.PARKED:
            facts["rule"] = (
                "the host failed HOST_MAX_FAILURES times in a row and its probe failed too: another comes after a day "
                "or more, or by the next start"
            )
            return UrlState(row.url, State.WAITING, Reason.HOST_PARKED, facts)
        if -host.robots_until(scheme) > self._now or (host.robots_until(scheme) < 0 and host.failures):
            facts["rule"] = f"{scheme}://{address.host}/robots.txt could not be had: nothing may be asked for"
            return UrlState(row.url, State.WAITING, Reason.ROBOTS_UNREACHABLE, facts)
        refusal = self._robots_refusal(address, host)
        if refusal is not None:
            facts["rule"] = refusal
            return UrlState(row.url, State.REFUSED, Reason.ROBOTS, facts)
        state, reason = State.RETRY if row.tries else State.WAITING, ""
        if host.rest_until > self._now:
            reason, facts["rule"] = Reason.RATE_LIMITED, "the host rests: it asked to be left alone or failed"
        elif host.door.until > self._now and caused_externally(row):
            reason, facts["rule"] = Reason.EXTERNAL_DOOR, _RULES[Reason.EXTERNAL_DOOR]
        return UrlState(row.url, state, reason, facts)

    def _held(self, host: Host) -> tuple[Reason, str] | None:
        """Why the operator keeps the host from being asked, or the whole crawl."""
        if (reason_given := self._holds.pause_of(host.name)) is not None:
            return Reason.PAUSED, f"the host is paused, {reason_given}: scrapy resume {host_name(host.name)}"
        if limit := self._holds.limit_of(host):
            had = f"{counted(host.pages, 'page')}, {human_bytes(host.received_bytes)}"
            had += f", busy {human_seconds(host.busy_seconds)}"
            return Reason.HOST_LIMIT, f"the host has had its {limit} ({had}); a start with a higher one goes on"
        return self._halted

    def _decided(self, address: Address, record: PageRecord) -> UrlState:
        facts: dict[str, Any] = {"time": moment_fact("decided_at", record.fetched_at), "status": record.status or None}
        reason = Reason(record.reason) if record.reason in set(Reason) else None
        if reason in ANSWERED:
            return UrlState(record.url, State.DONE, record.reason, facts)
        if reason in _REFUSALS:
            facts["rule"] = self._rule(reason, address)
            return UrlState(record.url, State.REFUSED, record.reason, facts)
        return UrlState(record.url, State.FAILED, record.reason, facts)

    def _unseen(self, address: Address, via: Via | None) -> UrlState:
        """What would become of the URL if it were found now (as a link of ``via``, else one level below a seed)."""
        if via is not None and via.nofollow:
            rule = f"{via.url} asks that this link be not followed"
            return UrlState(address.url, State.REFUSED, Reason.NOFOLLOW, {"rule": rule, "via": via.url})
        depth = via.depth + 1 if via is not None else 1
        refusal = self._filters.refusal(_found(address, depth, via), self._now)
        if refusal is None:
            host = self._host(address.host)
            ports = self._ports(address.host)
            known = sum(port.known for port in ports or ())
            if ports is None:
                refusal = Reason.TOO_MANY_PORTS
            elif not known and self._domain(address.host) is not None:
                refusal = Reason.TOO_MANY_HOSTS
            elif not known and self._names(address, depth, via) is not None:
                refusal = Reason.TOO_MANY_NAMES
            elif known >= self._filters.max_urls_per_host:
                refusal = Reason.BUDGET
            elif (robots := self._robots_refusal(address, host)) is not None:
                return UrlState(address.url, State.REFUSED, Reason.ROBOTS, {"rule": robots})
        if refusal is not None:
            facts: dict[str, Any] = {"rule": self._rule(refusal, address, depth, via)}
            if via is not None:
                facts["via"] = via.url
            return UrlState(address.url, State.REFUSED, refusal, facts)
        hint = "no seed, no page fetched so far and no redirect leads there; every gate would let it in"
        if via is None:
            hint += " (--via PAGE asks as a link of that page)"
        return UrlState(address.url, State.NEVER_SEEN, "", {"rule": hint})

    # --- the rules' own words -------------------------------------------------------------------

    def _rule(self, reason: Reason, address: Address, depth: int = 0, via: Via | None = None) -> str:
        filters = self._filters
        if reason is Reason.NEVERCRAWL:
            return self._excluded(host_name(address.host)) or "the host was on the NeverCrawl list then; it is not now"
        if reason is Reason.ROBOTS:
            found = self._robots_refusal(address, self._host(address.host))
            return found or "robots.txt forbade it then; the copy of now does not"
        if reason is Reason.EXTENSION:
            ending = address.url.partition("?")[0].rpartition(".")[2]
            return f".{ending} is one of SKIP_EXTENSIONS"
        if reason is Reason.DEPTH:
            text = f"{counted(depth, 'link')} from a seed; SCOPE_MAX_DEPTH={filters.scope.max_depth}"
            return _bound(text, "SCOPE_MAX_DEPTH", filters.scope.max_depth, depth)
        if reason is Reason.URL_LENGTH:
            text = f"{len(address.url):,} characters; SCOPE_MAX_URL_LENGTH={filters.scope.max_url_length:,}"
            return _bound(text, "SCOPE_MAX_URL_LENGTH", filters.scope.max_url_length, len(address.url))
        if reason is Reason.BUDGET:
            text = f"the host has SCOPE_MAX_URLS_PER_HOST={filters.max_urls_per_host:,} URLs already"
            known = self._host(address.host).known
            return _bound(text, "SCOPE_MAX_URLS_PER_HOST", filters.max_urls_per_host, known)
        if reason is Reason.TOO_MANY_PORTS:
            text = f"{host_name(address.host)} has {filters.max_ports_per_host:,} other ports already"
            return _bound(text, "SCOPE_MAX_PORTS_PER_HOST", filters.max_ports_per_host)
        if reason is Reason.TOO_MANY_HOSTS:
            return self._domain(address.host) or "its domain had as many hosts as it may have; now it may have more"
        if reason is Reason.TOO_MANY_NAMES:
            return self._names(address, depth, via) or "who names it had named too many hosts that have no address"
        if reason is Reason.SCOPE:
            return filters.scope.why(address) or "outside the scope then; it would be inside now"
        if reason in _BY_SITE and (words := self._site_words(address)):
            return f"its site says of its use: {words}"
        if reason in (Reason.RESERVED_ROBOTS, Reason.RESERVED_LICENSE):
            return "its site reserved it then; it does not now"
        return _RULES.get(reason, "")

    def _site_words(self, address: Address) -> str:
        """What is known of the site's words on a page's use before that is asked for."""
        packed = self._store.robots(f"{address.scheme}://{address.host}")
        if not packed:
            return ""
        record = RobotsRecord.unpack(packed)
        rules = record.rules(self._token)
        terms = [f"{name.removeprefix('ai-use-')}: {words}" for name, words in rules.terms_for(address.url)]
        licenses = [f"License: {place}" for place in rules.licenses]
        return " | ".join([*rules.words_for(address.url), *licenses, *terms])

    def _excluded(self, name: str) -> str:
        listed = self._filters.never_crawl
        listing = listed.listing(name, self._now)
        if listing is None:
            return ""
        path, line, text = str(listing.path), listing.line, listing.text
        return Fact(f"line {line} of {path}: {text}", rule=text, list_file=path, list_line=line)

    def _robots_refusal(self, address: Address, host: Host) -> str | None:
        """The line of robots.txt that forbids the URL; None when none does or no copy is known."""
        packed = self._store.robots(f"{address.scheme}://{host.name}")
        if packed is None:
            return None
        record = RobotsRecord.unpack(packed)
        line = refusing_line(record.body, self._token, address.url)
        line = line or (LEFT_ALONE if host.left_alone else "")  # by the robots.txt of the other of http and https
        if not line:
            return None
        at = record.fetched_at
        return Fact(f"{line} (robots.txt of {moment(at)})", rule=line, robots_fetched_at=iso_moment(at))

    def _robots_opinions(self, address: Address) -> Fact | None:
        """What the host's robots.txt says by both readers; None when no copy is known or it has no rule for us."""
        packed = self._store.robots(f"{address.scheme}://{address.host}")
        body = b"" if packed is None else RobotsRecord.unpack(packed).body
        if not read_robots_text(body, self._token).rules:
            return None
        found = opinions(body, self._token, address.url)
        return Fact(found.text(), **found.values())

    def _robots_fact(self, host: Host, scheme: str) -> Fact | None:
        until = host.robots_until(scheme)
        packed = self._store.robots(f"{scheme}://{host.name}")
        if until < 0:
            again = {"reached": False, "asked_again_at": iso_moment(-until)}
            return Fact(f"cannot be reached; asked again from {moment(-until)}", **{f"robots_{scheme}": again})
        if packed is None:
            return None
        record = RobotsRecord.unpack(packed)
        rules = parse_robots(record.body, self._token)
        text = f"status {record.status}, {len(record.body):,} bytes, of {moment(record.fetched_at)}"
        if rules.crawl_delay_seconds:
            text += f"; Crawl-delay: {rules.crawl_delay_seconds:g}"
        if rules.request_rate_seconds:
            text += f"; Request-rate: one in {rules.request_rate_seconds:g} s"
        values = {
            "reached": True,
            "status": record.status,
            "bytes": len(record.body),
            "fetched_at": iso_moment(record.fetched_at),
            "crawl_delay_seconds": rules.crawl_delay_seconds or None,
            "request_rate_seconds": rules.request_rate_seconds or None,
        }
        return Fact(text, **{f"robots_{scheme}": values})

    # --- ports and domains ----------------------------------------------------------------------

    def _ports(self, key: str) -> list[Host] | None:
        """All ports of a host's name, itself included; None when it is one too many and was not taken up."""
        name, port = host_name(key), port_of(key)
        first = self._host(name)
        if port and port not in first.other_ports and len(first.other_ports) >= self._filters.max_ports_per_host:
            return None
        return [first, *(self._host(key_of(name, number)) for number in {*first.other_ports, port} - {0})]

    def _domain(self, key: str) -> str | None:
        """Why the domain of a host may have no host more; None when it may."""
        for domain in {bounded_domain(key), registered_domain(key)}:
            known = stored_fact(self._store, HostFact.DOMAIN, DomainHosts, domain)
            most = self._filters.max_hosts_per_domain
            if known.full(most) and not self._filters.any_hosts(domain, self._now):
                earned = f" and {known.most(most) - most:,} that its pages earned" if known.most(most) > most else ""
                text = f"{domain} has {counted(known.hosts, 'host')}: SCOPE_MAX_HOSTS_PER_DOMAIN={most:,}{earned}"
                return _bound(text, "SCOPE_MAX_HOSTS_PER_DOMAIN", known.most(most), known.hosts)
        return None

    def _names(self, address: Address, depth: int, via: Via | None) -> str | None:
        """Why the domain that names the URL's host may name no further one; None when it may."""
        named_by = _found(address, depth, via).named_by
        known = stored_fact(self._store, HostFact.NAMED, NamedHosts, named_by)
        if not named_by or not known.full or self._host(address.host).ever_queued:
            return None
        unresolved = counted(known.unresolved, "host")
        text = f"{named_by} has named {unresolved} without an address, and {known.resolved:,} with one"
        return Fact(text, rule=text, named_by=named_by, limit=known.most, value=known.unresolved)

    # --- clocks ---------------------------------------------------------------------------------

    def _clock(self, host: Host) -> dict[str, Any]:
        free = max(host.next_free, host.rests_until(self._now))
        ports = self._ports(host.name) or [host]
        asked = max((port for port in ports if port.name != host.name), key=lambda port: port.name_free, default=host)
        if asked.name_free > free:  # another port of the name is waited for
            free = max(asked.name_free, asked.name_free - asked.delay_seconds + host.delay_seconds)
        facts: dict[str, Any] = {
            "free_at": moment_fact("free_at", free) if free > self._now else None,
            "free_in_seconds": round(max(0.0, free - self._now), 3),
            "pace_seconds": round(host.delay_seconds, 3),
            "pace_from": pace_source(host),
        }
        if host.rest_until > self._now:
            facts["rests_until"] = moment_fact("rests_until", host.rest_until)
        if host.door.until > self._now:
            why = host.door.reason or "slow"
            facts["door"] = Fact(
                f"closed to what only other domains led to, until {moment(host.door.until)} ({why})",
                door_closed_until=iso_moment(host.door.until),
                door_reason=why,
            )
        if len(ports) > 1:
            numbers = [port_of(port.name) for port in ports]
            facts["ports"] = Fact(", ".join(str(number or "default") for number in numbers), ports=numbers)
        return facts

    def _host(self, name: str) -> Host:
        packed = self._store.host(name)
        return Host(name, 0.0) if packed is None else Host.unpack(name, packed)

    def _row(self, address: Address) -> tuple[QueuedPage | None, int]:
        """The URL's queue row and its place, from 1. Reads the queue up to it."""
        keys = _keys(address)
        if not any(self._store.known(keys, [address.host] * len(keys))):
            return None, 0
        found, at = None, 0
        for place, row in enumerate(self._store.queue(address.host), 1):
            if row.page_key == address.key:
                if row.kind.in_page_budget:
                    return row, place
                found, at = found or row, at or place
        return found, at


def _keys(address: Address) -> list[bytes]:
    """Under which a URL may be known: as a page, as a stranger's, as a requisite."""
    return [address.key, external_key(address.key), requisite_key(address.key)]


def _bound(text: str, setting: str, limit: int, value: int | None = None) -> Fact:
    """A bound that was met: the setting, what it allows (with what was earned), and what there is."""
    return Fact(text, rule=text, setting=setting, limit=limit, value=value)


def _found(address: Address, depth: int, via: Via | None) -> DiscoveredUrl:
    """The URL as it would be found on a page."""
    if via is None:
        return DiscoveredUrl(address, depth, "L", "", 0)
    flags = FLAG_EXTERNAL if of_other_domain(address.host, host_key(via.url)) else 0
    return DiscoveredUrl(address, depth, "L", via.url, 0, flags).owned()


_SYNTAX: dict[Reason, str] = {
    Reason.INVALID_URL: "not an absolute URL, or one whose host or port cannot exist",
    Reason.SCHEME: "neither http nor https",
}
_RULES: dict[Reason, str] = {
    Reason.TRAP: "the path repeats its segments, has too many of them, or holds a host name as a folder",
    Reason.EXTERNAL_DOOR: "its host had trouble with what other domains' pages had us ask of it: they wait",
    Reason.EXTERNAL_BUDGET: "pages of other domains alone name it, and they named too much here: scrapy traps",
    Reason.SITEMAP_BUDGET: "the host's sitemaps named too few new pages so far: scrapy traps",
    Reason.REQUISITE_BUDGET: "pages need it to be seen, and their host has had its share: 20,000, or "
    "too little of what was asked for was new",
    Reason.ROBOTS_REDIRECT: "a robots.txt was redirected here too often",
    Reason.PRIVATE_ADDRESS: "a private, loopback or reserved address that is not in FETCH_ALLOW_NETWORKS",
    Reason.ROBOTS_UNREACHABLE: "robots.txt of this scheme could not be had (5xx, 429, wall, no connection, cut short)",
    Reason.BAD_PORT: "a service that is not the web's is expected at this port (Fetch standard, port blocking)",
    Reason.HOST_PARKED: "the host failed HOST_MAX_FAILURES times in a row",
    Reason.POISON: "the process died more than once while it read the page; scrapy recover --poison queues it again",
    Reason.FOREIGN_ENTRY: "a sitemap names it that may not speak for its host",
    Reason.RENDER_PACE: "a page in the browser wanted it; its host had no turn for it in the 60 s that it waited",
    Reason.HUB_UNPROVEN: "a feed names it as its hub; it was asked once and has not verified a subscription",
    Reason.MIDDLEWARE: "a downloader middleware of the project dropped it, answered it or sent another instead",
    Reason.PAUSED: "the operator had paused the host",
    Reason.HOST_LIMIT: "the host had had as much as it may have (-a max_pages_per_host= and its likes)",
    Reason.CRAWL_LIMIT: "the crawl had had as much as it may have (-a max_pages= and its likes)",
    Reason.RESERVED_TDMREP: "the site's tdmrep.json reserves it from PURPOSE",
    Reason.RESERVED_HEADER: "a header of its answer reserves it from PURPOSE: scrapy consent",
    Reason.RESERVED_PAGE: "the page itself reserves its use from PURPOSE: scrapy consent",
    Reason.PAYMENT_REQUIRED: "the site wants money for it (status 402, or its licence), which a crawl never pays",
    Reason.PACE_GUARD: "would have broken the promised pace and was not sent",
}
