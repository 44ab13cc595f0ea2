"""Crawls in processes of their own that are spoken to while they run, of sites with as many pages as wanted."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.commands.running import scrapy as here
from tests.hostile.arena import SETTINGS, Arena, Asked, page
from tests.web import zygote
from tests.web.running import IDENTITY
from tests.web.waiting import wait_until
from tests.web.zygote import Process


def chain(web: Arena, name: str, pages: int = 40) -> str:
    """A site whose pages link to the next five; its front page's URL."""

    def make(asked: Asked) -> bytes | None:
        at = 0 if asked.path == "/" else int(asked.path.strip("/")) if asked.path.strip("/").isdigit() else pages
        links = [f"/{near}" for near in range(at + 1, min(at + 6, pages))]
        said = " ".join(f"{name}x{'abcdefghij'[at % 10] * (at // 10 + 1)}x{place}" for place in range(50))
        return page(*links, text=said) if at < pages else None

    return web.site(name, make)


def asked(web: Arena, *hosts: str) -> int:
    """Pages that these hosts were asked for."""
    return sum(len(web.paths(host)) for host in hosts)


@contextlib.contextmanager
def crawling(
    web: Arena,
    *arguments: str,
    settings: Mapping[str, str] | None = None,
    command: str = "crawl web",
    module: str = "scrapy",
) -> Iterator[Process]:
    """A crawl in a process of its own; killed on leaving when it has not ended. ``module``: what runs the command."""
    given = {
        **SETTINGS, **IDENTITY, "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "CRAWL_DIR": str(web.folder / "crawl"), "SCOPE_MAX_DEPTH": "10000", **(settings or {}),
    }  # fmt: skip
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    whole = [sys.executable, "-m", *module.split(), *command.split(), *arguments, *options]
    with (web.folder / "log.txt").open("ab") as log:
        process = Process(whole, log, env=zygote.direct())
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def log_of(web: Arena) -> str:
    """What the crawls have said."""
    return (web.folder / "log.txt").read_text()


def quick(folder: Path, *arguments: str) -> Any:
    """What a command answers with ``--json``; in this process, since starting one takes longer than most commands."""
    ended = here(*arguments, "--json", "-s", f"CRAWL_DIR={folder}")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def after(web: Arena, host: str, moment: float) -> list[str]:
    """What a host was asked after a moment."""
    return [visit.path for visit in web.of(host) if visit.start > moment]


def moved_on(web: Arena, host: str, count: int = 3) -> None:
    """Wait until the host was asked so often again."""
    before = len(web.of(host))
    wait_until(lambda: len(web.of(host)) >= before + count, f"{count} more of {host}", seconds=30)
