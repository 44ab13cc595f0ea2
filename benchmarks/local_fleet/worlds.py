"""The webs that a fleet crawls under trouble, and what must be in its archive and the server's log afterwards."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from benchmarks.real_pages.site import RealSite, build, install, nginx
from benchmarks.real_pages.walker import walk
from crawlerproject.stores.logs.request_log import read_log
from tests.web.judge import Verdict, judge_captures, judge_folder, judge_pauses, read_captures, read_visits
from tests.web.running import RunningWeb, synthetic_web

HOST_SECONDS, IP_SECONDS = 0.25, 0.5  # PACE_PRESET=mirror
_APPS, _PAGES_AN_APP = 8, 10


class TroubledWeb(NamedTuple):
    """One that is being served."""

    web: RunningWeb
    scope: str
    settings: Mapping[str, str]
    judge: Callable[[list[Path]], Verdict]  # of the workers' folders


Begin = Callable[[Path, int | None], AbstractContextManager[TroubledWeb]]
"""Serves one from a folder, with about so many pages where it can have fewer."""


@contextlib.contextmanager
def small(folder: Path, pages: int | None) -> Iterator[TroubledWeb]:
    """The synthetic one, with all that servers do wrong."""
    with synthetic_web(folder) as web:

        def judge(folders: list[Path]) -> Verdict:
            promised = {"host_seconds": HOST_SECONDS, "ip_seconds": IP_SECONDS}
            return judge_folder(web.folder, None, workers=folders, log=False, **promised)

        yield TroubledWeb(web, "any", {}, judge)


@contextlib.contextmanager
def manuals(folder: Path, pages: int | None) -> Iterator[TroubledWeb]:
    """Debian's handbook and PostgreSQL's manual, by nginx."""
    install()
    folder.mkdir()
    site = build(folder, pages)
    (folder / "nevercrawl.txt").touch()
    with nginx(site):
        yield TroubledWeb(RunningWeb(folder, site.port, 0), "host", {}, lambda folders: _of_manuals(site, folders))


def _of_manuals(site: RealSite, folders: list[Path]) -> Verdict:
    reached = walk(site)
    verdict = judge_pauses(read_visits(site.log), host_seconds=HOST_SECONDS, ip_seconds=IP_SECONDS)
    captures = read_captures(*(folder / "warc" for folder in folders))
    verdict.add(judge_captures(captures, reached.pages | reached.dead, optional=reached.others))
    verdict.facts.append(f"links reach {len(reached.pages)} pages and {len(reached.dead)} addresses that are not there")
    return verdict


@contextlib.contextmanager
def apps(folder: Path, pages: int | None) -> Iterator[TroubledWeb]:
    """Pages that scripts build; each names one that nothing else names."""
    # No render may outlive what a test waits for; a page that a kill interrupts is rendered again.
    settings = {"RENDER": "auto", "RENDER_TIMEOUT_SECONDS": "20", "RENDER_SCREENSHOT": "False"}
    with synthetic_web(folder, "--profile", "many-apps", "--hosts", str(_APPS)) as web:
        yield TroubledWeb(web, "any", settings, lambda folders: _of_apps(web, folders))


def _of_apps(web: RunningWeb, folders: list[Path]) -> Verdict:
    hosts = [f"http://app{number}.test:{web.port}" for number in range(_APPS)]
    shells = {f"{host}/{page}" for host in hosts for page in range(_PAGES_AN_APP)}
    built = {f"{host}/built/{page}" for host in hosts for page in range(_PAGES_AN_APP)}
    files = {f"{host}/data/{page}.json" for host in hosts for page in range(_PAGES_AN_APP)}
    files |= {f"{host}/app.js" for host in hosts}
    visits = read_visits(web.folder / "server.jsonl")
    pages = [visit for visit in visits if "." not in visit.path]
    verdict = judge_pauses(pages, host_seconds=HOST_SECONDS, ip_seconds=IP_SECONDS)
    everything = judge_pauses(visits, host_seconds=0.0, ip_seconds=0.0)
    verdict.faults += everything.faults
    verdict.facts += [f"with files for the browser: {fact}" for fact in everything.facts]
    captures = read_captures(*(folder / "warc" for folder in folders))
    verdict.add(judge_captures(captures, shells | built, optional=files))
    outcomes = Counter(
        (row["url"], row["reason"]) for each in folders for row in read_log(each / "log") if row["rendered"]
    )
    shown = {url for url, reason in outcomes if reason == "rendered"}
    verdict.faults += [f"not rendered: {url}" for url in sorted(shells - shown)]
    verdict.facts.append(f"{len(shown)} pages rendered, {outcomes.total()} lines of renders")
    return verdict


WORLDS: dict[str, Begin] = {"small": small, "manuals": manuals, "apps": apps}
