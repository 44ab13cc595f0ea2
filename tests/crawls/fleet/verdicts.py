"""What must hold of a crawl by several workers, however they were disturbed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.commands.crawled import scrapy
from tests.web.judge import read_visits
from tests.web.running import RunningWeb

# Of the requests that the server saw the logs lack those of which a kill left no line.
_LOGGED_SHARE = 0.9
# A kill costs what was not committed: so many of all pages are asked for once more, and one page so often.
_AGAIN_SHARE, _MOST_TIMES = 0.15, 3


def audited(web: RunningWeb, crawl: Path) -> None:
    """One ``scrapy audit`` over all workers: no pause of any host or address was cut short, whichever asked."""
    done = scrapy("audit", "--json", str(crawl))

    assert done.returncode == 0, done.stdout + done.stderr
    seen = len(read_visits(web.folder / "server.jsonl"))
    assert json.loads(done.stdout)["requests"] >= seen * _LOGGED_SHARE


def seldom_asked_again(web: RunningWeb) -> None:
    """Most pages were asked once: a kill or a stop costs what was not committed, not more."""
    visits = read_visits(web.folder / "server.jsonl")
    asked = Counter((visit.host, visit.path) for visit in visits if visit.status == 200)

    assert max(asked.values()) <= _MOST_TIMES
    assert asked.total() - len(asked) < _AGAIN_SHARE * len(asked)
