"""A crawl of pages that scripts build, with a real Chromium, judged by the server's log, the WARC and our log."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.batch.fulltext import Search, search
from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.config.chromium import find_chromium
from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.logs.request_log import read_log
from tests.batch.loaded import load
from tests.web import zygote
from tests.web.judge import Visit, read_visits
from tests.web.running import RunningWeb, crawl_command, finish, measured, small_settings, start, synthetic_web
from tests.web.waiting import busyness, wait_until


class Limits(NamedTuple):
    """What a page has at most."""

    navigation_seconds: float
    timeout_seconds: float


MOST_BUSY = 4.0  # the longest of these is a minute for a page that others slow down, with all that may come between
# Pages that end by themselves use no more of this than they need. The first is below what a file may take (10 s): a
# page that waits for one that never comes is read before.
AMPLE = Limits(8.0, 60.0)
# Pages that compute, fill memory or load without end use up all of it, and a processor beside; ended by it, they are
# judged alike on every machine. They have a crawl of their own, so that no other page has so little.
SCANT = Limits(4.0, 8.0)
ENDLESS = ("loop", "late-loop", "hog", "heap", "unfinished")
ORDINARY = "plain.test"  # crawled beside those
SETTINGS = {
    "RENDER": "auto",
    "FRONTIER_MAX_REST_SECONDS": "3",
    "RENDER_MAX_IN_FLIGHT": "3",
    "RENDER_PAGE_MEMORY_BYTES": "300000000",
    "RENDER_SCREENSHOT": "True",
}
HOST_SECONDS = 0.25  # PACE_PRESET=mirror


class Record(NamedTuple):
    """One WARC record."""

    kind: str
    url: str
    fields: dict[str, str]
    body: bytes


class Crawled(NamedTuple):
    """A finished crawl, read once."""

    web: RunningWeb
    folder: Path
    output: str
    visits: list[Visit]
    rows: list[dict[str, Any]]
    records: list[Record]
    timeout_seconds: float

    def asked(self, host: str, path: str = "") -> list[Visit]:
        """The server's visits of one host, or of one path of it."""
        return [visit for visit in self.visits if visit.host == host and path in ("", visit.path)]

    def renders(self, host: str) -> dict[str, str]:
        """The last outcome of each render, by path."""
        rows = [row for row in self.rows if row["rendered"] and host in row["host"]]
        return {urlsplit(row["url"]).path: row["reason"] for row in rows}


def ample() -> Limits:
    """For pages that end by themselves, on a machine that may be busy."""
    busy = min(busyness(), MOST_BUSY)
    return Limits(*(seconds * busy for seconds in AMPLE))


def command_of(web: RunningWeb, folder: Path, limits: Limits, **settings: str) -> list[str]:
    """The command line of a crawl whose pages have so long."""
    bounds = {
        "RENDER_NAVIGATION_SECONDS": f"{limits.navigation_seconds:g}",
        "RENDER_TIMEOUT_SECONDS": f"{limits.timeout_seconds:g}",
    }
    given = {**small_settings(web), **SETTINGS, **bounds, **settings}
    return crawl_command(web.folder / "seeds.txt", folder, web.folder / "hosts", given)


def run(web: RunningWeb, folder: Path, limits: Limits | None = None, **settings: str) -> Crawled:
    """Crawl to the end."""
    log, limits = folder.with_suffix(".log"), limits or ample()
    assert measured(command_of(web, folder, limits, **settings), log).status == 0, log.read_text()[-3000:]
    return read(web, folder, log.read_text(), limits)


def read(web: RunningWeb, folder: Path, output: str, limits: Limits) -> Crawled:
    """All that a crawl left."""
    records = []
    for path in sorted((folder / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                fields = dict(record.rec_headers.headers)
                records.append(Record(record.rec_type, fields.get("WARC-Target-URI", ""), fields,
                                      record.content_stream().read()))  # fmt: skip
    rows: list[dict[str, Any]] = list(read_log(folder / "log"))
    visits = read_visits(web.folder / "server.jsonl")
    return Crawled(web, folder, output, visits, rows, records, limits.timeout_seconds)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that most tests here look at: of all pages that end by themselves."""
    folder = tmp_path_factory.mktemp("rendered")
    with synthetic_web(folder / "web", "--profile", "apps") as web:
        seed(web, lambda host: not endless_or_beside(host))
        yield run(web, folder / "crawl")


@pytest.fixture(scope="module")
def burdened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A crawl of the pages that do not end, and of an ordinary host."""
    folder = tmp_path_factory.mktemp("burdened")
    with synthetic_web(folder / "web", "--profile", "apps") as web:
        seed(web, endless_or_beside)
        yield run(web, folder / "crawl", SCANT)


def seed(web: RunningWeb, wanted: Callable[[str], bool]) -> None:
    """Leave those seeds whose host is wanted."""
    seeds = (web.folder / "seeds.txt").read_text().splitlines(keepends=True)
    (web.folder / "seeds.txt").write_text(
        "".join(line for line in seeds if wanted(urlsplit(line.strip()).hostname or ""))
    )


def endless_or_beside(host: str) -> bool:
    """Whether it belongs to the crawl of pages that do not end."""
    return host == ORDINARY or host in {f"{name}.hostile.test" for name in ENDLESS}


def test_a_browser_is_there() -> None:
    """`make test` installs one; without it nothing below would mean anything."""
    assert find_chromium("") is not None


# --- a page built by script -------------------------------------------------------------------------


def test_links_that_only_the_script_made_are_crawled(crawled: Crawled) -> None:
    """The application's data names three pages; they are fetched, and what they link to is rendered too."""
    assert {visit.path for visit in crawled.asked("app.test")} >= {"/built/0", "/built/1", "/built/2", "/second"}
    assert crawled.renders("app.test") == {"/": "rendered", "/second": "rendered", "/third": "rendered"}


def test_the_page_is_archived_both_ways(crawled: Crawled) -> None:
    """The plain answer as it was, and the DOM as a conversion that refers to it, with how it came to be."""
    front = next(record.url for record in crawled.records if record.url.endswith("/") and "//app.test" in record.url)
    of_front = [record for record in crawled.records if record.url == front]
    plain = next(record for record in of_front if record.kind == "response")
    dom = next(record for record in of_front if record.kind == "conversion")
    facts = next(record for record in of_front if record.fields.get("WARC-Refers-To") == dom.fields["WARC-Record-ID"])

    assert b'<div id="root"></div>' in plain.body
    assert b"<h1>Built</h1>" in dom.body
    assert dom.fields["WARC-Refers-To"] == plain.fields["WARC-Record-ID"]
    assert dom.fields["Content-Type"] == "text/html; charset=utf-8"
    text = facts.body.decode()
    assert "browser: Chromium " in text
    assert "viewport: 1280x1024" in text
    assert "waitRule: " in text
    assert "blocked: stylesheet http://app.test" in text
    assert sorted(record.kind for record in of_front).count("resource") == 1  # the screenshot
    assert all(check_file(path).flaws == [] for path in (crawled.folder / "warc").iterdir())


def test_sub_requests_are_logged_and_archived(crawled: Crawled) -> None:
    """Each that was sent has a line with hop E and a response record."""
    rows = [row for row in crawled.rows if row["hop"] == "E" and row["status"]]
    sent = {urlsplit(row["url"]).path for row in rows}

    assert sent >= {"/app.js", "/data.json", "/library.js"}
    assert {row["url"] for row in rows} <= {record.url for record in crawled.records if record.kind == "response"}
    assert all(row["warc"] and row["via"] for row in rows)


def test_later_steps_read_what_the_browser_rendered(crawled: Crawled, tmp_path: Path) -> None:
    """Each page that was rendered has the words and links of its DOM in Parquet, and the search finds them."""
    (warc,) = (crawled.folder / "warc").iterdir()
    assert process_warc(warc, tmp_path, ExtractOptions()).problem == ""
    pages = {row["url"]: row for row in pq.read_table(tmp_path / "pages").to_pylist()}
    links = pq.read_table(tmp_path / "links").to_pylist()

    rendered = {row["url"] for row in crawled.rows if row["reason"] == "rendered"}
    assert {url for url, row in pages.items() if row["rendered"]} == rendered
    front = next(row for url, row in pages.items() if "//app.test" in url and urlsplit(url).path == "/")
    assert front["words"] > 300
    assert front["text"].startswith("Built")
    built = {urlsplit(link["target"]).path for link in links if link["source"] == front["url"]}
    assert built >= {"/built/0", "/built/1", "/built/2"}
    load(tmp_path / "pages", tmp_path / "search")
    assert front["url"] in {hit.url for hit in search(tmp_path / "search", Search("Built", 100)).hits}


# --- politeness, by the server's log ----------------------------------------------------------------


def test_every_document_was_asked_for_once(crawled: Crawled) -> None:
    """Rendering a page does not fetch it again, nor a script that another page has had."""
    counts = Counter((visit.host, visit.path) for visit in crawled.visits if visit.path != "/slow.js")

    assert {place: count for place, count in counts.items() if count > 1} == {}


def test_blocked_kinds_were_never_asked_for(crawled: Crawled) -> None:
    """Styles, fonts, pictures, films, sockets, beacons, forms: nothing of it reached a server."""
    paths = {visit.path for visit in crawled.asked("app.test")}

    assert paths.isdisjoint({"/style.css", "/icon.png", "/font.woff2", "/back.png", "/picture.png", "/film.webm"})
    assert paths.isdisjoint({"/socket", "/beacon", "/vote", "/favicon.ico"})


def test_forbidden_addresses_were_never_asked_for(crawled: Crawled) -> None:
    """robots.txt of the page's host and of another, NeverCrawl and trackers hold for scripts as for pages."""
    assert crawled.asked("app.test", "/private/data.json") == []
    assert crawled.asked("cdn.test", "/secret.js") == []
    assert crawled.asked("cdn.test")[0].path == "/robots.txt"
    assert crawled.asked("never.excluded.test") == []
    assert crawled.asked("www.google-analytics.com") == []


def test_a_host_rests_for_what_the_browser_asked(crawled: Crawled) -> None:
    """Two sub-requests beyond the document: the host's next request comes three delays after the last."""
    visits = crawled.asked("app.test")
    last = max(index for index, visit in enumerate(visits) if visit.path in ("/app.js", "/data.json"))

    assert visits[last + 1].start - visits[last].end >= 3 * HOST_SECONDS - 0.01


def test_no_host_was_asked_twice_at_once(crawled: Crawled, burdened: Crawled) -> None:
    """Sub-requests of one host come one after the other, also from several pages; the slow file is cut, not left."""
    for crawl in (crawled, burdened):
        for host in {visit.host for visit in crawl.visits}:
            pairs = pairwise(crawl.asked(host))
            assert [(one, two) for one, two in pairs if two.start < one.end - 0.01 and not one.cut] == []
        assert "guard_refused" not in crawl.output
        assert "Traceback" not in crawl.output


def test_nothing_passes_from_one_host_to_another(crawled: Crawled) -> None:
    """A cookie for the common domain, set by one host's page, is not there for the next host's."""
    seen = {visit.path for visit in crawled.visits if visit.host.endswith(".iso.test") and "/saw/" in visit.path}

    assert seen == {"/saw/nothing"}


def test_an_anti_bot_wall_is_recorded_and_obeyed(crawled: Crawled) -> None:
    """It is archived under its own word, never rendered, and the host rests."""
    assert [visit.path for visit in crawled.asked("wall.test")] == ["/robots.txt", "/"]
    assert [row["reason"] for row in crawled.rows if "wall.test" in row["host"]] == ["fetched", "challenge"]
    assert crawled.renders("wall.test") == {}


def test_a_template_that_gains_nothing_is_stopped(crawled: Crawled) -> None:
    """After five renders of one template that found nothing the rest stays plain (one in fifty is probed)."""
    assert 5 <= len(crawled.renders("idle.test")) <= 7 < len(crawled.asked("idle.test")) - 1


def test_audit_and_verify_agree(crawled: Crawled, burdened: Crawled) -> None:
    """Our own commands find every pause kept, sub-requests included, and the archive whole."""
    for command, crawl in product(("audit", "verify"), (crawled, burdened)):
        told = scrapy(command, str(crawl.folder))
        assert told.returncode == 0, told.stdout[-2000:]


# --- hostile pages ----------------------------------------------------------------------------------

OUTCOMES = {
    "loop": {"render-timeout"},
    "late-loop": {"render-timeout"},
    "hog": {"render-failed", "render-timeout"},  # on a busy machine its time may be over before its memory is
    "heap": {"render-failed", "render-timeout"},
    "dialogs": {"rendered"},  # twenty-seven round trips, before it counts as loaded
    "downloads": {"rendered"},
    "windows": {"rendered"},
    "redirects": {"rendered", "render-failed"},  # it may leave for another page while it is being read
    "reloads": {"rendered"},
    "unfinished": {"render-timeout"},
    "waiting": {"rendered"},
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_hostile_page_ends_within_its_limit(crawled: Crawled, burdened: Crawled, name: str) -> None:
    """It is recorded with what became of it, and its plain answer stands."""
    crawl = burdened if name in ENDLESS else crawled
    url = f"http://{name}.hostile.test:{crawl.web.port}/"
    rows = [row for row in crawl.rows if row["url"] == url]

    assert [row["reason"] for row in rows if not row["rendered"]] == ["fetched"]
    assert {row["reason"] for row in rows if row["rendered"]} <= OUTCOMES[name]
    assert all(row["seconds"] <= crawl.timeout_seconds + 5 * busyness() for row in rows)
    assert any(row["rendered"] for row in rows)


def test_nothing_else_slows_down(burdened: Crawled) -> None:
    """While the hostile pages were shown, an ordinary host was asked at its pace (0.5 s an address)."""
    visits = burdened.asked(ORDINARY)
    pauses = [two.start - one.end for one, two in pairwise(visits)]

    assert len(visits) == 31
    assert median(pauses) < 0.5 + 0.5 * busyness()


# --- without a browser, and when it dies ------------------------------------------------------------


def test_plain_pages_start_no_browser(tmp_path: Path) -> None:
    """A crawl without pages that need one has no browser process, of which Scrapy's statistics tell."""
    with synthetic_web(tmp_path / "web", "--profile", "apps") as web:
        (web.folder / "seeds.txt").write_text(f"http://plain.test:{web.port}/21\n")
        crawled = run(web, tmp_path / "crawl")

    assert len(crawled.asked("plain.test")) == 2
    assert "browser_count" not in crawled.output
    assert "render/browsers" not in crawled.output


def test_pages_wait_for_a_run_that_has_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Chromium that is said once; the next run renders what waited, from the archive alone."""
    with synthetic_web(tmp_path / "web", "--profile", "apps") as web:
        (web.folder / "seeds.txt").write_text(f"http://one.iso.test:{web.port}/\nhttp://two.iso.test:{web.port}/\n")
        with monkeypatch.context() as patch:
            patch.setenv("PATH", str(tmp_path))
            patch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
            without = run(web, tmp_path / "crawl")
        # Debian's whole browser where there is one: all else here is shown by the headless shell.
        later = run(web, tmp_path / "crawl", RENDER_BROWSER=shutil.which("chromium") or "")

    assert without.output.count("Pages that need a browser stay queued for a later run") == 1
    assert without.renders("iso.test") == {}
    assert [row["host"].partition(":")[0] for row in later.rows if row["rendered"]] != []
    assert sum(row["reason"] == "rendered" for row in later.rows) == 2
    assert {visit.path: visit.status for visit in later.asked("two.iso.test")} == {
        "/robots.txt": 200,
        "/": 200,
        "/saw/nothing": 200,
    }
    assert len(later.asked("one.iso.test", "/")) == 1


def test_a_browser_that_dies_costs_nothing(tmp_path: Path) -> None:
    """Killed in the middle, it is started anew and every page is rendered in the end."""
    with synthetic_web(tmp_path / "web", "--profile", "many-apps", "--hosts", "2") as web:
        seeds = [line for line in (web.folder / "seeds.txt").read_text().splitlines() if re.search("/[0-3]$", line)]
        (web.folder / "seeds.txt").write_text("\n".join(seeds))
        log, limits, began = tmp_path / "crawl.log", ample(), time.monotonic()
        command = command_of(web, tmp_path / "crawl", limits, RENDER_SCREENSHOT="False")
        with log.open("wb") as output:
            process = start(command, output)
            assert kill_browser(process.pid, web.folder / "server.jsonl", after=b"/data/1.json") > 0
            assert finish(process, began).status == 0
        crawled = read(web, tmp_path / "crawl", log.read_text(), limits)

    counts = Counter(row["url"] for row in crawled.rows if row["reason"] == "rendered")
    assert set(counts) == set(seeds)
    assert set(counts.values()) == {1}
    assert Counter((visit.host, visit.path) for visit in crawled.visits).most_common(1)[0][1] == 1
    assert crawled.output.count("Browser started") >= 2


def test_the_shell_shows_a_page_both_ways(tmp_path: Path) -> None:
    """The plain answer with the verdict of triage, and the same page as the browser shows it."""
    with synthetic_web(tmp_path / "web", "--profile", "apps") as web:
        url = f"http://app.test:{web.port}/"
        code = f"print('plain', page.words, page.triage); fetch(rendered({url!r})); print('shown', page.words)"
        networks, hosts = 'FETCH_ALLOW_NETWORKS=["127.0.0.0/8"]', f"FETCH_HOSTS_FILE={web.folder / 'hosts'}"
        options = [networks, hosts, "PACE_PRESET=mirror", "CRAWLER_CONTACT=bot@example.org"]
        given = [part for option in options for part in ("-s", option)]
        told = scrapy("shell", *given, url, typed=code.replace("; ", "\n") + "\n")
        asked = [visit.path for visit in read_visits(web.folder / "server.jsonl") if visit.host == "app.test"]

    assert "plain 0 render (score 9: " in told.stdout, told.stderr[-2000:]
    assert "shown 304" in told.stdout
    assert asked == ["/robots.txt", "/", "/", "/app.js", "/data.json"]


def scrapy(*arguments: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
    """One command of ours, ``typed`` at its prompt."""
    command = [sys.executable, "-m", "scrapy", *arguments]
    return zygote.run(command, input=typed or "", timeout=100)


def kill_browser(crawl: int, server_log: Path, *, after: bytes) -> int:
    """Kill the crawl's browser processes once the server has logged ``after``; how many there were."""
    wait_until(lambda: server_log.exists() and after in server_log.read_bytes(), "asked a page for its data")
    killed = 0
    for pid in descendants(crawl):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"chrom" in command.partition(b"\0")[0]:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        except OSError:
            continue
    return killed


def descendants(root: int) -> list[int]:
    """Every process below ``root``."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {root})
