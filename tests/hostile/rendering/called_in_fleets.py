"""What sites get whose interfaces are called from the browser, in a fleet: shares of what a site gets that none calls.

    python -m tests.hostile.rendering.called_in_fleets [process|local|redis ...]

The pages are those of ``test_widgets``. For a site that falls short its pauses are printed, beside the control's.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from tests.hostile.arena import SETTINGS as ORDINARY
from tests.hostile.arena import Arena, arena
from tests.hostile.rendering.test_widgets import (
    CALLED,
    CONTROL,
    GREEDY,
    LEAST,
    OPEN,
    QUOTA,
    SETTINGS,
    WIDGETS,
    Site,
    articles,
    widgets,
)
from tests.hostile.shared_addresses import crawl_of
from tests.web.running import one_pace
from tests.web.waiting import wait_until

# A worker over Redis queues what its pages name with the next commit, a second later. At a quicker pace a host's own
# queue is empty in between, and its turns go to what other sites' pages want: at 0.15 s on a busy machine 72 to 100 %.
_PACED_SECONDS = 1.2
_SLOWER = {**ORDINARY, **SETTINGS, **one_pace(_PACED_SECONDS), "PACE_MAX_SECONDS": "10", "PACE_MULTIPLIER": "1"}
_ARTICLES = 60
_RETRY_SECONDS = 3
_SECONDS = 180.0


def shares(kind: str, folder: Path) -> dict[str, float]:
    """Of each site that is called, when the control has all of its articles."""
    with arena(folder) as web, contextlib.ExitStack() as stack:
        called = [web.raw_site(name, Site(_ARTICLES, _RETRY_SECONDS).talk) for name in (*CALLED, CONTROL)]
        for name in (QUOTA, OPEN):
            web.raw_site(name, Site(0, _RETRY_SECONDS).talk)
        calling = [web.site(name, lambda asked: widgets(web, asked)) for name in (*WIDGETS, GREEDY)]
        processes = stack.enter_context(
            crawl_of(
                kind,
                web,
                [*calling, *called],
                _SLOWER,
            )
        )
        wait_until(lambda: len(articles(web, CONTROL)) >= _ARTICLES, "the control has all", seconds=_SECONDS)
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=60)
        last = max(visit.start for visit in web.of(CONTROL))
        found = {name: len(articles(web, name, until=last)) / _ARTICLES for name in CALLED}
        for name in (CONTROL, *(name for name, share in found.items() if share < LEAST)):
            print(f"  {name}: {_pauses(web, name)}")
        return found


def _pauses(web: Arena, name: str) -> str:
    """Those between articles that were longer than twice the pace."""
    visits = [visit for visit in web.of(name) if visit.path.startswith("/article/")]
    first = min(visit.start for visit in web.visits)
    long = [
        f"{after.start - before.end:.1f} s at {before.end - first:.0f}"
        for before, after in pairwise(visits)
        if after.start - before.end > 2 * _PACED_SECONDS
    ]
    return f"{len(visits)} articles from {visits[0].start - first:.1f} s on; paused {', '.join(long) or 'never'}"


def main() -> int:
    """Measure and print; whether each site got its nine tenths."""
    least = 1.0
    for kind in sys.argv[1:] or ("process", "local", "redis"):
        found = shares(kind, Path(tempfile.mkdtemp()))
        least = min(least, *found.values())
        print(f"{kind:8} {'  '.join(f'{name} {share:.0%}' for name, share in found.items())}", flush=True)
    return 0 if least >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
