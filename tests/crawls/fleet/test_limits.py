"""The sums of a fleet are those of a crawl of one process: pages exactly, whoever dies and does not come back."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from crawlerproject.stores.redis.journal_view import crawl_in_redis
from crawlerproject.stores.redis.keys import worker_keys
from tests.crawls.operator.spoken_to import asked, chain, crawling, log_of
from tests.hostile.arena import Arena, arena
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.waiting import wait_until
from tests.web.zygote import Process

_HOSTS = [f"h{number}.test" for number in range(6)]
_MOST = 40
_FLEET = {"FLEET_PARTITIONS": "6", "FLEET_LEASE_SECONDS": "6", "COMMIT_SECONDS": "0.5", "FETCH_TIMEOUT_SECONDS": "3"}


def pages_of(server: RedisServer, *workers: str) -> int:
    """Pages that these workers committed."""
    with server.client() as client:
        facts = [client.hget(worker_keys("web", name).state, "fact:totals") for name in workers]
    return sum(json.loads(fact)[0] for fact in facts if fact is not None)


def were_asked(web: Arena, pages: int) -> bool:
    """For so many pages."""
    return asked(web, *_HOSTS) >= pages


def done(server: RedisServer) -> int:
    """Pages that the frontier has as fetched."""
    with crawl_in_redis(server.url, "web") as view:
        return sum(record.reason == "fetched" and not record.url.endswith("robots.txt") for _, record in view.pages())


def test_pages_are_exact_whoever_dies(tmp_path: Path) -> None:
    """Two workers are killed in the middle, and one does not return: the other has what that one might have fetched."""
    with redis_server(tmp_path / "redis") as server, arena(tmp_path) as web, ExitStack() as stack:
        seeds = "seeds=" + ",".join(chain(web, name, 200) for name in _HOSTS)

        def worker(name: str) -> Process:
            settings = {**_FLEET, "STATE_URL": server.url, "FLEET_WORKER": name}
            return stack.enter_context(crawling(web, "-a", seeds, "-a", f"max_pages={_MOST}", settings=settings))

        both = [worker(name) for name in ("w1", "w2")]
        wait_until(partial(were_asked, web, 12), "12 pages", seconds=60)
        for process in both:
            process.kill()
        assert worker("w1").wait(timeout=100) == 0, log_of(web)[-3000:]

        assert (pages_of(server, "w1", "w2"), done(server)) == (_MOST, _MOST)
    assert f"has had its max_pages={_MOST}" in log_of(web)
    assert "Traceback" not in log_of(web)
