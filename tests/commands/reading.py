"""Every command that promises to read a crawl's folder and to change nothing there, with a line of it; and the others.

``python -m tests.commands.reading``: command lines as JSON on standard input are run, and how each ended is JSON on
standard output; so that an ordinary user runs them all in one process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import Done, scrapy

#: What the others change there, or what they are that they have no need to.
OTHERS = {
    "add": "takes seeds in, by an order in control/",
    "commoncrawl": "takes pages in",
    "crawl": "crawls",
    "desk": "serves until it is ended; its orders are other commands",
    "export": "keeps what it has exported in processed/",
    "fleet": "crawls",
    "identity": "makes keys; check reads them, and asks for their directory",
    "index": "makes index/ again",
    "load": "makes search/",
    "pause": "pauses; --list reads",
    "process": "makes processed/",
    "rank": "makes processed/rank/",
    "recover": "mends",
    "resume": "resumes",
    "runspider": "crawls",
    "state": "migrates, restores, backs up; migrate --check reads",
    "stop": "ends the crawl",
    "upload": "keeps how far it is in upload/",
    "withdraw": "keeps what was asked back in withdrawn.txt; --list reads",
}
#: Commands that run Scrapy's engine, which one process does only once.
WITH_AN_ENGINE = ("fetch", "parse", "reparse", "shell", "view")


class Reading(NamedTuple):
    """A command line that changes nothing, and the exit statuses with which it may end."""

    arguments: tuple[str, ...]
    statuses: tuple[int, ...] = (0,)


def readings(crawl: CrawlDir, url: str, out: Path) -> list[Reading]:
    """Of a crawl that has archived ``url`` with status 200; what they write goes into ``out``."""
    host = url.split("/")[2]
    lines: dict[str, list[tuple[str, ...]]] = {
        "audit": [(str(crawl),)],
        "consent": [(), ("--purpose", "ai-train", "--json")],
        "botpage": [(), (str(out / "bot.html"),)],
        "samples": [(str(out / "samples"),)],
        "forecast": [(url,), ("--recrawl",), ("--recrawl", "--budget", "2", "--json")],
        "hosts": [(), ("--json",)],
        "lookup": [(url,), (url, "--cdxj")],
        "never": [("--list",)],
        "pause": [("--list",)],
        "plan": [(str(out / "plan.jsonl.gz"), "--known", str(crawl))],
        "reply": [(host,)],
        "report": [(str(out / "report.html"),)],
        "requests": [(host,), (host, "--json")],
        "show": [(url,), (url, "--raw")],
        "state": [("migrate", "--check")],
        "status": [(), ("--json",), ("--metrics",)],
        "robots": [(url,), (f"{url}nowhere", "--json")],
        "traps": [()],
        "withdraw": [("--list",)],
        "wacz": [(str(crawl), "-o", str(out / "crawl.wacz"), "--text")],
        "why": [(url,), (host, "--json"), (f"{url}nowhere",)],
        "fetch": [(url,)],
        "parse": [("--nocolour", url)],
        "reparse": [("web", str(crawl), "--all", "-O", str(out / "items.jsonl"))],
        "shell": [("--archived", url, "-c", "page.title"), (url, "-c", "page.title")],
    }  # fmt: skip
    found = [Reading((name, *given)) for name, of_name in lines.items() for given in of_name]
    return [
        *found,
        Reading(("verify-request", __file__, "--url", url), (1,)),  # it has no signature
        Reading(("doctor",), (1,)),
        Reading(("replay", str(crawl), "--port", "0", "-s", "REPLAY_COMMAND=/bin/false"), (2,)),
        Reading(("search", "ax0"), (0 if crawl.search.is_dir() else 2,)),  # of tests.hostile.arena's innocent pages
        Reading(("status", "--alive"), (0 if crawl.locked() else 1,)),
        Reading(("verify", str(crawl))),
        Reading(("view", url.replace(host, "excluded.invalid")), (1,)),  # another one opens a browser
    ]


def main() -> None:
    """Run them, here."""
    ended = [scrapy(*arguments) for arguments in json.load(sys.stdin)]
    json.dump([[done.returncode, done.stdout, done.stderr] for done in ended], sys.stdout)


def read_answers(text: str) -> list[Done]:
    """What ``main`` has written."""
    return [Done(status, said, errors, said.encode()) for status, said, errors in json.loads(text)]


if __name__ == "__main__":
    main()
