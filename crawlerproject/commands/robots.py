"""``scrapy robots``: what a site's robots.txt says about one URL, by two readers, and the file itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from crawlerproject.config.values import identity
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.robots_opinions import opinions
from crawlerproject.inspection.url_state import iso_moment
from crawlerproject.operator_command import InspectCommand, one_argument, option
from crawlerproject.rules.printable import moment
from crawlerproject.rules.robots.policy import RobotsRecord
from crawlerproject.rules.url.urls import Address, UrlRefused, parse
from crawlerproject.terminal import say, say_json

_STDIN = "-"
_DIFFERENCE = "The two differ. A crawl goes by the first, which reads as RFC 9309 says: docs/robots.md#two-readers"


class Command(InspectCommand):
    """Works while the crawl runs, and after; with ``--file`` it needs none."""

    arguments = "URL [--agent NAME] [--file FILE] [--json]"
    summary = "What the site's robots.txt says about a URL, by our reader and by Protego"
    example = "scrapy robots https://example.org/page"

    def long_desc(self) -> str:
        return (
            f"{super().long_desc()}. Without a crawl: scrapy fetch https://example.org/robots.txt | "
            "scrapy robots https://example.org/page --file -"
        )

    options = (
        option("--agent", metavar="NAME", help="as the crawler of this name, not as CRAWLER_NAME"),
        option("--file", metavar="FILE", help="read this robots.txt (- for standard input)"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            address = parse(one_argument(args, "an absolute URL", self.example))
        except UrlRefused as refused:
            raise OperatorError(f"Give an absolute URL ({refused.reason}), for example: {self.example}") from None
        if opts.file:
            body = sys.stdin.buffer.read() if opts.file == _STDIN else Path(opts.file).read_bytes()
            record = RobotsRecord(200, body, 0.0, 0.0, "")
        else:
            record = self._stored(address)
        token = opts.agent or identity(self.settings).token
        found = opinions(record.body, token, address.url)
        lines = record.body.decode("utf-8-sig", "backslashreplace").splitlines()
        if opts.json:
            facts = {
                "url": address.url,
                "agent": token,
                "status": record.status,
                "fetched_at": iso_moment(record.fetched_at),
            }
            say_json({**facts, **found.values(), "differ": found.differ, "lines": lines})
            return
        say(address.url, f"  as {token}: {found.text()}")
        if found.differ:
            say(f"  {_DIFFERENCE}")
        source = opts.file or f"the crawl's copy of {moment(record.fetched_at)}, status {record.status}"
        say(f"  robots.txt: {source}")
        say(*(f"{'>' if place == found.line else ' '}{place:5} {line}" for place, line in enumerate(lines, 1)))

    def _stored(self, address: Address) -> RobotsRecord:
        origin = f"{address.scheme}://{address.host}"
        other = f"fetch it politely: scrapy fetch {origin}/robots.txt | scrapy robots {address.url} --file -"
        try:
            with self.look().store() as store:
                packed = store.robots(origin)
        except OperatorError as error:
            raise OperatorError(f"{error} Or {other}") from None
        if packed is None:
            raise OperatorError(f"The crawl has no copy of {origin}/robots.txt; {other}")
        return RobotsRecord.unpack(packed)
