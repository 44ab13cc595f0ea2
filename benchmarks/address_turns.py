"""What the domains at one address get, in simulated time over the real workbench: slow ones beside quick ones.

    python -m benchmarks.address_turns --hours 4

Each case is run twice: with its slow domains, and with these as quick as the others (the control). A host is asked at
the default pace, an address twice a second at most.
"""

from __future__ import annotations

import argparse
from collections import Counter
from heapq import heappop, heappush
from typing import NamedTuple

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.workbench import Workbench

_PACE_SECONDS, _IP_PAUSE_SECONDS = 5.0, 0.5  # the default preset, PACE_IP_SECONDS
_QUICK_SECONDS = 0.1
ADDRESS = "192.0.2.1"


class Case(NamedTuple):
    """Domains at one address."""

    title: str
    quick: int
    slow: int
    slow_seconds: float
    hosts_of_slow: int = 1


CASES = (
    Case("one site and a slow one", 1, 1, 10.0),
    Case("one site and a slow one of 50 hosts", 1, 1, 10.0, 50),
    Case("5 sites and 20 slow ones", 5, 20, 10.0),
    Case("100 sites and 100 that take 3 s", 100, 100, 3.0),
    Case("2,000 domains, 20 of them slow", 1_980, 20, 10.0),
    Case("2,000 domains, 200 of them take 3 s", 1_800, 200, 3.0),
)


def requests(case: Case, seconds: float, *, slow: bool = True) -> Counter[str]:
    """Requests by domain within so many seconds; without ``slow`` every domain answers quickly."""
    bench = Workbench(ip_pause_seconds=_IP_PAUSE_SECONDS, domain_of=lambda name: name.partition(".")[2])
    domains = [(f"quick{number}.test", 1) for number in range(case.quick)]
    domains += [(f"slow{number}.test", case.hosts_of_slow) for number in range(case.slow)]
    for domain, hosts in domains:
        for number in range(hosts):
            bench.add(Host(f"www{number}.{domain}"))
    got: Counter[str] = Counter()
    ends: list[tuple[float, int, Host]] = []
    now = 0.0
    while now < seconds:
        while (turn := bench.take(now)) is not None:
            if not turn.address:
                turn = bench.found(turn.host, ADDRESS, 1e12, now)
            if turn is not None:
                domain = turn.host.name.partition(".")[2]
                got[domain] += 1
                takes = case.slow_seconds if slow and domain.startswith("slow") else _QUICK_SECONDS
                heappush(ends, (now + takes, sum(got.values()), turn.host))
        wake = bench.wake_at()
        now = min(ends[0][0] if ends else seconds, max(wake, now) if wake is not None else seconds)
        while ends and ends[0][0] <= now:
            host = heappop(ends)[2]
            bench.ended(host, now, now + _PACE_SECONDS, work=True)
    return got


def _each(got: Counter[str], kind: str, count: int) -> list[int]:
    return sorted(got[f"{kind}{number}.test"] for number in range(count))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.address_turns", description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=4.0)
    given = parser.parse_args()
    print(
        "| at one address | a quick site an hour | its control | share | least | a slow domain an hour | its control |"
    )
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        got, control = (requests(case, given.hours * 3600, slow=slow) for slow in (True, False))
        quick, calm = _each(got, "quick", case.quick), _each(control, "quick", case.quick)
        slow, slow_calm = (sum(_each(each, "slow", case.slow)) / case.slow for each in (got, control))
        mean, calm_mean = sum(quick) / case.quick, sum(calm) / case.quick
        figures = [each / given.hours for each in (mean, calm_mean, quick[0], slow, slow_calm)]
        shown = "| {:,.1f} | {:,.1f} | {share:.0f} % | {:,.1f} | {:,.2f} | {:,.2f} |"
        print(f"| {case.title}", shown.format(*figures, share=100 * mean / calm_mean))


if __name__ == "__main__":
    main()
