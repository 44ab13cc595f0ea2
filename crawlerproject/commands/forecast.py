"""``scrapy forecast``: before the first request, how long politeness alone will take."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from crawlerproject.config.values import ip_seconds_of, preset_of
from crawlerproject.crawl.start.preflight import check_known, seeds_with_options
from crawlerproject.errors import OperatorError
from crawlerproject.frontier.assembly import never_crawl_of
from crawlerproject.operator_command import InspectCommand, one_argument, option
from crawlerproject.rules.politeness.bottleneck import PaceLimits, Queue, pace_limits
from crawlerproject.rules.politeness.pauses import delay_seconds
from crawlerproject.rules.politeness.quiet_hours import LONGER
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.rules.revisits.history import DAY_SECONDS
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.operator_files.watched_lists import HostPaceFile
from crawlerproject.terminal import say, say_either, say_json

# Pages of each host for which the time is shown, beside the seeds alone.
_EXAMPLES = (100, 1_000, 10_000)
# Budgets of a recrawl that are shown by default: visits a day as shares of the known pages.
_BUDGET_SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)


# With REQUISITES, what the first page of a host needs of that host itself: the median of 628 real pages that name their
# own address. Of a further page, what no other had shown before (ours: two or three images in two sizes; the Debian
# handbook's need 0.7).
_FIRST_REQUISITES, _FURTHER_REQUISITES = 26, 5


class _Forecast(NamedTuple):
    """What pauses allow to the hosts of some seeds."""

    seeds: Counter[str]  # by host key
    delays: dict[str, float]  # seconds, by host key
    addresses: dict[str, str]  # by host name, as far as they are known
    names: int
    pace_seconds: float
    ip_pause_seconds: float | None

    @property
    def unknown(self) -> int:
        """Names whose address is not known."""
        return self.names - len(self.addresses)

    def limits(self, each: int | None = None) -> PaceLimits:
        """When each host has its seeds alone, or so many requests; its robots.txt comes first."""
        queues = [
            Queue(host, self.addresses.get(host_name(host), ""), (each or seeds) + 1, self.delays[host], 0.0, 0.0)
            for host, seeds in self.seeds.items()
        ]
        return pace_limits(queues, self.ip_pause_seconds)


def _lines(facts: dict[str, Any], counts: Sequence[int]) -> list[str]:
    """The same for a person."""
    known = f" at {counted(facts['addresses'], 'known address', 'known addresses')}" if facts["addresses"] else ""
    ip_pause = facts["ip_pause_seconds"]
    at_address = f"; to an IP address one every {human_seconds(ip_pause)}" if ip_pause else ""
    lines = [
        f"{counted(facts['seeds'], 'seed')} on {counted(facts['hosts'], 'host')}{known} "
        f"({facts['excluded']:,} excluded by the NeverCrawl list)",
        f"Pace: one request to a host every {human_seconds(facts['pace_seconds'])} before its response times are known"
        f"{at_address}",
    ]
    if facts["pages_per_second_at_most"] is not None:
        lines.append(f"So at most {facts['pages_per_second_at_most']:,.1f} pages/s, while all hosts have work")
    if ip_pause and facts["names_without_address"] > 1:
        lines.append(
            f"Of {counted(facts['names_without_address'], 'name')} the address is not known: those that share one get "
            f"{1 / ip_pause:,.1f} pages/s together (--resolve asks the DNS)"
        )
    seconds, most = facts["seconds_of_the_seeds"], facts["largest_host_seeds"]
    largest = f" ({facts['largest_host']} has {most:,} of them)" if most > 1 else ""
    lines.append(f"The seeds alone: at least {human_seconds(seconds)}{largest}")
    for count in counts:
        seconds = facts["seconds_by_pages_of_each_host"][str(count)]
        lines.append(f"{counted(count, 'page')} of each host: at least {human_seconds(seconds)}")
    lines += _of_requisites(facts, counts)
    if facts["longer_by_quiet_hours"] > 1 and max(facts["seconds_by_pages_of_each_host"].values()) > DAY_SECONDS:
        share = facts["longer_by_quiet_hours"] - 1
        lines.append(f"What takes days takes up to {share:.0%} longer for the hosts' busy hours (QUIET_HOURS)")
    lines.append(
        "robots.txt comes first and counts as a page of its host; a Crawl-delay or a slow server makes it longer."
    )
    return lines


def _of_requisites(facts: dict[str, Any], counts: Sequence[int]) -> list[str]:
    """What is added where requisites are fetched."""
    if (further := facts["requisites_of_further_pages"]) is None:
        return []
    lines = [
        f"With what they need to be seen (REQUISITES), {_FIRST_REQUISITES} requests of its host for the first page "
        f"and {further:,} for each further one (--requisites N):"
    ]
    for count in counts:
        seconds = facts["seconds_with_requisites"][str(count)]
        lines.append(f"{counted(count, 'page')} of each host: about {human_seconds(seconds)}")
    return lines


class Command(InspectCommand):
    """Sends nothing to any host; needs no crawl folder."""

    arguments = "[SEEDS] [--pages N] [--requisites N] [--resolve] [--json] | --recrawl [--budget N]"
    summary = "How long politeness alone will take, before the first request"

    example = "scrapy forecast seeds.txt --pages 500"

    options = (
        option("--pages", type=int, action="append", metavar="N", help="pages of each host; may be given again"),
        option("--requisites", type=int, metavar="N", help="what a page brings that no other of its host has shown"),
        option("--resolve", action="store_true", help="ask the DNS which hosts share an address"),
        option("--recrawl", action="store_true", help="what visits to known pages buy (of CRAWL_DIR)"),
        option("--budget", type=int, action="append", metavar="N", help="with it: visits a day"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.recrawl:
            self._recrawl(opts)
            return
        known = [self.crawl_file.seeds] if self.crawl_file is not None and self.crawl_file.seeds else []
        text = one_argument(args or known, "a file of seeds, or URLs separated by commas", self.example)
        addresses = seeds_with_options(text, "any").addresses
        never = never_crawl_of(self.settings).current(0.0)
        excluded = sum(never.excludes(host_name(seed.host)) for seed in addresses)
        hosts = Counter(seed.host for seed in addresses if not never.excludes(host_name(seed.host)))
        if not hosts:
            raise OperatorError("All seeds are on the NeverCrawl list; there is nothing to forecast.")
        crawl = self._forecast(hosts, resolve=opts.resolve)
        largest, most = hosts.most_common(1)[0]
        counts = opts.pages or [count for count in _EXAMPLES if count > most]
        if any(count < 1 for count in counts):
            raise OperatorError("--pages must be at least 1.")
        alone = crawl.limits()
        facts = {
            "seeds": len(addresses),
            "excluded": excluded,
            "hosts": len(hosts),
            "names": alone.names,
            "addresses": alone.addresses,
            "names_without_address": crawl.unknown,
            "largest_host": largest,
            "largest_host_seeds": most,
            "pace_seconds": crawl.pace_seconds,
            "ip_pause_seconds": crawl.ip_pause_seconds,
            "pages_per_second_at_most": None if alone.per_second is None else round(alone.per_second, 3),
            "longer_by_quiet_hours": LONGER if self.settings.getbool("QUIET_HOURS") else 1.0,
            "seconds_of_the_seeds": alone.seconds,
            "seconds_by_pages_of_each_host": {str(count): crawl.limits(count).seconds for count in [most, *counts]},
        }
        facts |= self._of_requisites(crawl, opts.requisites, [most, *counts])
        say_either(facts, _lines(facts, counts), as_json=opts.json)

    def _of_requisites(self, crawl: _Forecast, given: int | None, counts: Sequence[int]) -> dict[str, Any]:
        """What is added by requisites, as ``given`` or assumed; nothing where they are not fetched."""
        if given is not None and given < 0:
            raise OperatorError("--requisites must be at least 0.")
        if given is None and self.settings["REQUISITES"] in (None, "none"):
            return {"requisites_of_further_pages": None}
        further = _FURTHER_REQUISITES if given is None else given
        requests = {count: count + _FIRST_REQUISITES + (count - 1) * further for count in counts}
        seconds = {str(count): crawl.limits(each).seconds for count, each in requests.items()}
        return {"requisites_of_further_pages": further, "seconds_with_requisites": seconds}

    def _forecast(self, hosts: Counter[str], *, resolve: bool) -> _Forecast:
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.fetch.resolver import known_addresses, resolved_addresses

        settings = self.settings
        names = {host_name(host) for host in hosts}
        addresses = (resolved_addresses if resolve else known_addresses)(sorted(names), settings)
        base, paces = preset_of(settings), HostPaceFile(settings.get("HOST_PACE_FILE"))
        delays = {host: delay_seconds(paces.preset(host, base, 0.0), ()) for host in hosts}
        return _Forecast(hosts, delays, addresses, len(names), delay_seconds(base, ()), ip_seconds_of(settings))

    def _recrawl(self, opts: argparse.Namespace) -> None:
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.recrawl_forecast import forecast, known_beliefs

        check_known(self.settings)
        crawl = self.look()
        with crawl.store() as store:
            pages, beliefs = known_beliefs(store, random.Random(1))
        if not pages:
            raise OperatorError(f"No page of {crawl.folder} was read yet; there is nothing to visit again.")
        if min(opts.budget or [1]) < 1:
            raise OperatorError("--budget must be at least 1.")
        budgets = opts.budget or sorted({max(1, round(pages * share)) for share in _BUDGET_SHARES})
        rows = [forecast(beliefs, pages, budget) for budget in budgets]
        if opts.json:
            say_json({"pages": pages, "budgets": [row._asdict() for row in rows]})
            return
        say(f"{pages:,} known pages. Share that is as archived, on average, in the long run:")
        for row in rows:
            say(f"{row.visits_a_day:>9,} visits a day: {row.fresh:6.1%}  (all equally often: {row.even:.1%})")
