"""The two webs that a killed crawl can be tried on, behind one shape."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.real_pages.site import build, install, nginx
from benchmarks.real_pages.walker import walk
from tests.web.running import HASTE, synthetic_web


@dataclass(slots=True)
class Target:
    """A web to crawl: where to begin, what to expect, and the server's log."""

    folder: Path
    log: Path
    scope: str
    expected: set[str]
    settings: dict[str, str]
    loose: dict[str, list[str]] = field(default_factory=dict)  # what judge_captures calls optional, endless, forbidden
    aliases: list[list[str]] = field(default_factory=list)
    floors: Mapping[str, float] = field(default_factory=dict)


@contextlib.contextmanager
def small(folder: Path, port: int = 0) -> Iterator[Target]:
    """The synthetic web; the second time on the port of the first, so that addresses compare."""
    with synthetic_web(folder, "--port", str(port)):
        world = json.loads((folder / "world.json").read_text())
        forbidden = (folder / "forbidden.txt").read_text().splitlines()
        yield Target(
            folder,
            folder / "server.jsonl",
            "any",
            set((folder / "expected.txt").read_text().splitlines()),
            {**HASTE, "FETCH_CONNECT_TIMEOUT_SECONDS": "2", "NEVERCRAWL_FILE": str(folder / "nevercrawl.txt")},
            {"optional": world["optional"], "endless": world["endless"], "forbidden": forbidden},
            world["aliases"],
            world["floors"],
        )


@contextlib.contextmanager
def real(folder: Path, pages: int | None = None) -> Iterator[Target]:
    """The real pages behind nginx; one server for both crawls."""
    install()
    site = build(folder, pages)
    reached = walk(site)
    with nginx(site):
        expected = reached.pages | reached.dead
        yield Target(folder, site.log, "host", expected, {"RENDER": "never"}, {"optional": sorted(reached.others)})
