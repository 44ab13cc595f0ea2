"""``make alerts`` brings Debian's Prometheus; then ``python -m benchmarks.alerts [CRAWL ...]``, as root for all of it.

The rules are those of deploy/prometheus with their windows and waits shortened to seconds, and nothing else about them
changed. Exit status 1 when an alert is missed, does not end, or fires for the crawl that has no trouble, and when an
expression of the dashboard or of the rules had no number from any crawl.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from benchmarks.alerts.crawl import WatchedCrawl, ended
from benchmarks.alerts.expressions import NOT_OF_A_FINE_CRAWL, unanswered, unmoved
from benchmarks.alerts.prometheus import PROGRAM, RULES, Prometheus, prometheus
from benchmarks.alerts.scenarios import SCENARIOS, Scenario
from benchmarks.alerts.troubles import Story
from benchmarks.alerts.web import serving
from tests.web.waiting import busyness

_UNTROUBLED_SECONDS = 20.0  # what all are watched for at first
_DEADLINE_SECONDS = 300.0  # of what is to fire, and of what is to end: thresholds of two minutes are as they were
_LOOK_SECONDS = 1.0
_OF_A_BUSY_MACHINE = "CrawlerLoopHeld"  # true of every crawl on one that has too few cores for all
_APART = "BENCHMARK_ALERTS_APART"
"""Set in the environment of the process whose mounts are its own."""

Pairs = set[tuple[str, str]]


def pairs_of(scenarios: Mapping[str, Scenario]) -> Pairs:
    """Crawl and alert, of all that is to fire."""
    return {(name, alert) for name, scenario in scenarios.items() for alert in scenario.names()}


Crawling = tuple[dict[str, WatchedCrawl], list[Story]]


@contextlib.contextmanager
def crawling(folder: Path, scenarios: Mapping[str, Scenario]) -> Iterator[Crawling]:
    """All crawls at work, and their stories, which have got to the end of the first part."""
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(serving())
        crawls, stories = dict[str, WatchedCrawl](), list[Story]()
        for name, scenario in scenarios.items():
            crawl = crawls[name] = WatchedCrawl(folder, name, scenario.way, web)
            story = scenario.trouble(crawl)
            stack.callback(story.close)
            next(story)
            stack.enter_context(ended(crawl))
            crawl.start()
            stories.append(story)
        yield crawls, stories


class Watch:
    """What has fired, said as it does."""

    def __init__(self, watching: Prometheus) -> None:
        self._watching = watching
        self.began = time.monotonic()  # of what is going on now: the trouble, or its end
        self.now: Pairs = set()
        self.fired: dict[tuple[str, str], float] = {}  # seconds after the trouble's begin
        self.ended: dict[tuple[str, str], float] = {}  # the last time; seconds after its end, none before it

    @property
    def seen(self) -> Pairs:
        """All that ever fired."""
        return set(self.fired)

    def until(self, done: Callable[[], bool], seconds: float) -> None:
        """Look until it is so, or the time is over."""
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
            before, self.now = self.now, self._watching.firing()
            seconds_since = time.monotonic() - self.began
            for sign, pairs, times in (("+", self.now - before, self.fired), ("-", before - self.now, self.ended)):
                for pair in sorted(pairs):
                    print(f"{seconds_since:5.0f} s {sign} {pair[0]:10} {pair[1]}", flush=True)
                    if sign == "-" or pair not in times:
                        times[pair] = seconds_since

    def during(self, title: str, parts: Sequence[Future[None]], done: Callable[[], bool]) -> None:
        """Look while stories go on, and until what is wanted is so."""
        print(title, flush=True)
        self.began = time.monotonic()
        self.until(lambda: done() and all(part.done() for part in parts), _DEADLINE_SECONDS * busyness())
        for part in parts:
            part.result()  # its error


def table(scenarios: Mapping[str, Scenario], look: Watch) -> Iterator[str]:
    """For seen_firing.md."""
    yield "| alert | what was done | fired after | ended after |"
    yield "|---|---|---|---|"
    for pair in sorted(pairs_of(scenarios), key=lambda pair: pair[::-1]):
        fired = f"{look.fired[pair]:.0f} s" if pair in look.fired else "never"
        ended = "never" if pair in look.now else f"{look.ended.get(pair, 0.0):.0f} s"
        yield f"| {pair[1]} | {scenarios[pair[0]].cause} | {fired} | {ended} |"


def watch(folder: Path, scenarios: Mapping[str, Scenario]) -> list[str]:
    """Make every trouble and end it; what was not as it should be."""
    wanted, faults = pairs_of(scenarios), list[str]()

    def note(text: str, pairs: Pairs) -> None:
        faults.extend(f"{text}: {name} {alert}" for name, alert in sorted(pairs))

    with (
        crawling(folder, scenarios) as (crawls, stories),
        prometheus(folder, crawls) as watching,
        ThreadPoolExecutor(len(stories)) as pool,  # they go on side by side
    ):
        look = Watch(watching)
        look.until(lambda: False, _UNTROUBLED_SECONDS)
        look.during("The troubles begin.", [pool.submit(next, story) for story in stories], lambda: wanted <= look.seen)
        note("did not fire", wanted - look.seen)
        look.ended.clear()  # what came and went while the trouble lasted
        look.during("The troubles end.", [pool.submit(next, story) for story in stories], lambda: not wanted & look.now)
        note("did not end", wanted & look.now)
        busy = {_OF_A_BUSY_MACHINE} if busyness() > 1 else set[str]()
        note("fired without a cause", {pair for pair in look.seen if pair[0] == "fine" and pair[1] not in busy})
        every = set(re.findall(r"- alert: (\w+)", RULES.read_text()))
        if scenarios.keys() == SCENARIOS.keys():  # all that can happen has
            faults.extend(f"never a number: {expression}" for expression in unanswered(watching))
            print("Always 0:", ", ".join(unmoved(watching)) or "none")
        if "fine" in scenarios:
            known = NOT_OF_A_FINE_CRAWL
            faults.extend(f"no number of fine: {expression}" for expression in unanswered(watching, "fine", known))
        print("Besides:", ", ".join(f"{name} {alert}" for name, alert in sorted(look.seen - wanted)) or "none")
        print(*table(scenarios, look), sep="\n")
        print("Not provoked:", ", ".join(sorted(every - {alert for _, alert in wanted})) or "none")
    return faults


def chosen(names: list[str]) -> dict[str, Scenario]:
    """The crawls of these names, or all; without those that only root can make."""
    scenarios = {name: scenario for name, scenario in SCENARIOS.items() if not names or name in names}
    if os.geteuid():
        for name in [name for name, scenario in scenarios.items() if scenario.root]:
            print(f"{name}: left out, since only root may mount a file system or make a control group")
            del scenarios[name]
    return scenarios


def main() -> int:
    """Print what fires and ends as it does, then what was not as it should be."""
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is missing: make alerts brings it")
    if not os.geteuid() and _APART not in os.environ:  # mounts go with the process, however it ends
        os.environ[_APART] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "benchmarks.alerts", *sys.argv[1:]])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with all that it has started
    folder = os.environ.get("ALERTS_FOLDER")
    with contextlib.nullcontext(folder) if folder else tempfile.TemporaryDirectory() as place:
        faults = watch(Path(place), chosen(sys.argv[1:]))
    print(*(faults or ["Each fired, and ended."]), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
