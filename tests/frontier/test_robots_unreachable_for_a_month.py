"""robots.txt that answers 5xx for longer than 30 days, in a crawl that runs all the while."""

from __future__ import annotations

from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

DAY = 86_400.0
RULES = b"User-agent: *\nDisallow: /private\n"
HOST = "http://a.example"
_STEP_SECONDS = 1800.0


def test_the_last_good_copy_serves_for_thirty_days_and_then_nothing_is_asked() -> None:
    """RFC 9309 2.3.1.4; when it is back a month later the crawl goes on by itself, with what it forbids now."""
    bench = Bench(MemoryStore(), max_urls=1000)
    bench.add(f"{HOST}/first")
    bench.through_robots(RULES)
    began, broken, back = bench.now, bench.now + DAY / 2, bench.now + 60 * DAY
    pages: list[tuple[float, str]] = []
    robots: list[float] = []
    number = 0
    while bench.now < began + 75 * DAY:
        if bench.now >= began + number * DAY:  # a new page each day, and one that is forbidden
            bench.add(f"{HOST}/{number}", f"{HOST}/private/{number}")
            number += 1
        bench.frontier.hosts.probe_again(bench.now)
        while (lease := bench.next()) is not None:
            if not lease.row.kind.is_robots:
                pages.append((bench.now - began, lease.row.url))
                bench.answer(lease)
            else:
                robots.append(bench.now - began)
                good = not broken < bench.now < back
                bench.answer(lease, 200 if good else 503, RULES if good else b"")
        bench.commit()
        bench.now += _STEP_SECONDS

    assert not [url for _, url in pages if "/private" in url]
    fetched = {url.rpartition("/")[2] for at, url in pages if at <= 30 * DAY}
    assert {str(day) for day in range(29)} <= fetched
    assert not [url for at, url in pages if 30.5 * DAY < at < 60 * DAY]
    assert len([at for at in robots if 30.5 * DAY < at < 60 * DAY]) <= 10
    assert {url.rpartition("/")[2] for _, url in pages} >= {str(day) for day in range(74)}
