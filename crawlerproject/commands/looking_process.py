"""``python -m crawlerproject.commands.looking_process NICENESS``: answers for the page of a running crawl.

On standard input the crawl's settings are one line of JSON, and so is each question: ``{"kind": "why", "text": URL or
host}`` or ``{"kind": "host", "text": host}``. Each answer is one line of JSON. It is the same as the commands' own,
since they give it. The process ends with its crawl, which closes its input.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import orjson
from scrapy.settings import Settings

from crawlerproject.commands.why import found_of, lines, plain
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.robots_opinions import robots_versions
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.logs.request_log import last_of_host
from crawlerproject.terminal import json_text

# Of a host's page (ours): what a person reads.
_LAST_REQUESTS = 60
_ROBOTS_BYTES = 20_000
_FIELDS = (
    "time", "end", "url", "status", "reason", "mime", "bytes", "seconds", "ttfb_seconds", "delay_seconds", "hop",
    "location", "error", "rendered", "ip",
)  # fmt: skip


def main() -> None:
    """The process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(int(sys.argv[1]))
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what some library prints is no answer
    settings = Settings(orjson.loads(asked.readline() or b"{}"), priority="cmdline")
    for line in asked:
        answers.write(json_text(answer(settings, **orjson.loads(line))).encode() + b"\n")
        answers.flush()


def answer(settings: Settings, kind: str, text: str) -> dict[str, Any]:
    """What is asked for, or ``{"error": SENTENCE}``."""
    try:
        return _why(settings, text) if kind == "why" else _host(settings, text)
    except (OperatorError, StorageError) as error:
        return {"error": str(error)}


def _why(settings: Settings, text: str) -> dict[str, Any]:
    """What ``scrapy why`` says with ``--json``, and without."""
    found = found_of(CrawlView(settings), text)
    return {"answer": plain(found), "lines": lines(found)}


def _host(settings: Settings, name: str) -> dict[str, Any]:
    if "/" in name:
        raise OperatorError("A host is a name, with its port when that is not the scheme's default.")
    folders = folders_of(CrawlDir(settings["CRAWL_DIR"]))
    name = name.lower()
    rows = [row for folder in folders for row in last_of_host(folder.log, name, _LAST_REQUESTS)]
    rows = sorted(rows, key=lambda row: str(row.get("time")))[-_LAST_REQUESTS:]
    return {
        **_why(settings, name),
        "requests": [{field: row.get(field) for field in _FIELDS} for row in rows],
        "robots": [found for scheme in ("https", "http") if (found := _robots(folders, f"{scheme}://{name}"))],
    }


def _robots(folders: Sequence[CrawlDir], origin: str) -> dict[str, Any] | None:
    """The newest version of an origin's robots.txt, its beginning."""
    versions = robots_versions(folders, origin)
    if not versions:
        return None
    newest = versions[-1]
    text, cut = newest.body[:_ROBOTS_BYTES].decode("utf-8", "backslashreplace"), len(newest.body) > _ROBOTS_BYTES
    return {"origin": origin, "since": newest.since.timestamp(), "versions": len(versions), "text": text, "cut": cut}


if __name__ == "__main__":
    main()
