"""``scrapy requests HOST``: everything that an answer to a site's owner needs."""

from __future__ import annotations

import argparse
import re

from crawlerproject.inspection.robots_opinions import RobotsVersion, then_and_now
from crawlerproject.operator_command import SPAN, InspectCommand, one_argument, option, span_of
from crawlerproject.reports.summary import HostStory, bare_host, host_story
from crawlerproject.rules.printable import counted, human_bytes, human_seconds
from crawlerproject.terminal import say, say_json

# A robots.txt up to this many lines is printed; of a longer one the number.
_LINES = 40


class Command(InspectCommand):
    """Works while the crawl runs, and after."""

    arguments = "HOST [--since TIME] [--until TIME] [--subdomains] [--json]"
    summary = "What was asked of a host: times, URLs, answers, pauses kept, robots.txt then and now"

    example = "scrapy requests example.org --since 2026-01-31"

    options = (
        *SPAN,
        option("--subdomains", action="store_true", help="the names below the host as well"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        host = bare_host(one_argument(args, "a host", self.example))
        folders = self.look().folders
        story = host_story(folders, host, *span_of(opts), subdomains=opts.subdomains)
        if opts.json:
            say_json([visit.as_dict() for visit in story.visits])
        else:
            say(*_lines(story), *_robots_lines(*then_and_now(folders, story.origins, story.began)))


def _lines(story: HostStory) -> list[str]:
    if not story.visits:
        return [f"{story.host}: no request in the log (LOG_KEEP_DAYS are kept)."]
    lines = [f"{'time (UTC)':<23} {'answer':<20} {'pause':>10} {'promised':>10}  URL"]
    for attempt, pause in story.visits:
        answer = str(attempt["status"] or attempt["reason"])
        promised = "" if pause is None or attempt["delay_seconds"] is None else f"{attempt['delay_seconds']:.2f} s"
        kept = "" if pause is None else f"{pause.kept_seconds:.2f} s"
        lines.append(
            f"{attempt['time'][:23].replace('T', ' ')} {answer:<20} {kept:>10} {promised:>10}  {attempt['url']}"
        )
    counts = ", ".join(f"{name}: {count:,}" for name, count in story.statuses.most_common())
    lines += ["", f"{counted(len(story.visits), 'request')}, {human_bytes(story.received_bytes)}; {counts}"]
    if story.pauses:
        lines.append(f"Pauses: shortest {human_seconds(min(story.pauses))}, {story.too_soon:,} shorter than promised")
    return lines


def _robots_lines(then: list[RobotsVersion], now: list[RobotsVersion]) -> list[str]:
    lines = _robots("robots.txt then", then)
    return [*lines, *(_robots("robots.txt now", now) if now != then else ["robots.txt now: the same"] if now else [])]


def _robots(title: str, versions: list[RobotsVersion]) -> list[str]:
    lines = []
    for version in versions:
        # Lines as robots.txt has them (RFC 9309 2.2): str.splitlines() would also break at what is escaped here.
        text = re.split(r"\r\n|\r|\n", version.body.decode("utf-8", "replace").rstrip("\r\n"))
        lines.append(f"{title}: {version.origin}/robots.txt, seen since {version.moment} ({version.place})")
        lines += [f"    {line}" for line in text] if len(text) <= _LINES else [f"    {counted(len(text), 'line')}"]
    return lines
