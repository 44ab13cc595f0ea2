"""why, hosts, status and forecast, asked beside a running crawl of the synthetic web and after it."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scrapy.utils.project import get_project_settings

from crawlerproject import native
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.inspection.url_state import State, UrlState
from crawlerproject.stores.logs.request_log import read_log
from tests.commands.crawled import ask, scrapy
from tests.commands.running import Done
from tests.web.running import PROJECT, RunningWeb, crawl_command, small_settings, start, synthetic_web

DEADLINE_SECONDS = 60.0
# Small enough that the small web meets them.
BOUNDS = {"SCOPE_MAX_DEPTH": "6", "SCOPE_MAX_URLS_PER_HOST": "18", "BACKOFF_MAX_SECONDS": "2"}
PATIENCE = {"FRONTIER_MAX_REST_SECONDS": "3"}


class Crawled(NamedTuple):
    """A finished crawl and what was said while it ran."""

    web: RunningWeb
    folder: Path
    leased: UrlState
    waiting: UrlState
    status: dict[str, Any]
    text: str  # of ``scrapy status``, while it ran
    alive: Done  # ``scrapy status --alive``, while it ran
    output: str


def view(folder: Path) -> CrawlView:
    """A look in this process, quick enough to meet a page that is on its way."""
    settings = get_project_settings()
    settings.set("CRAWL_DIR", str(folder), "cmdline")
    return CrawlView(settings)


def seen(folder: Path, state: State) -> UrlState:
    """The answer for a URL of the slow host that is in this state now."""
    until = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < until:
        if (folder / "frontier" / "CURRENT").exists():
            crawl = view(folder)
            with crawl.store() as store:
                why = crawl.why(store)
                slow = [name for name, _ in store.hosts() if name.startswith("slow.test")]
                for row in [row for name in slow for row in store.queue(name)]:
                    answer = why.url(row.url)
                    if answer.state is state:
                        return answer
        time.sleep(0.2)
    raise AssertionError(f"no URL was ever {state}")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("looked")
    crawl_dir = folder / "crawl"
    with synthetic_web(folder / "web") as web:
        settings = {**small_settings(web), **PATIENCE, **BOUNDS}
        command = crawl_command(web.folder / "seeds.txt", crawl_dir, web.folder / "hosts", settings)
        with (folder / "crawl.log").open("wb") as output:
            process = start(command, output)
        try:
            leased, waiting = seen(crawl_dir, State.LEASED), seen(crawl_dir, State.WAITING)
            status, text = ask(crawl_dir, "status"), scrapy("status", folder=crawl_dir).stdout
            alive = scrapy("status", "--alive", folder=crawl_dir)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
        yield Crawled(web, crawl_dir, leased, waiting, status, text, alive, (folder / "crawl.log").read_text())


def test_looking_on_does_not_disturb_the_crawl(crawled: Crawled) -> None:
    """The crawl ended well, and no onlooker left anything but what the crawl itself writes."""
    assert "Traceback" not in crawled.output
    assert "is in use" not in crawled.output
    assert crawled.leased.url.startswith("http://slow.test")


def test_while_it_runs_urls_are_leased_or_wait(crawled: Crawled) -> None:
    """One page of the slow host is on its way to an address; another waits at a place, for a moment, at a pace."""
    assert crawled.leased.facts["ip"].startswith("127.")
    assert crawled.waiting.facts["place"] >= 1
    assert crawled.waiting.facts["pace_seconds"] >= 0.25
    assert crawled.waiting.facts["via"].startswith("http://")


def test_status_while_it_runs(crawled: Crawled) -> None:
    """It runs, it is bound by something, and what is left is counted with rests apart."""
    status = crawled.status

    assert status["running"] is True
    assert status["bound_by"] in ("politeness", "network", "cpu", "rests")
    assert status["politeness_ceiling_per_second"] >= 0
    assert set(status["hosts"]) <= {"in-flight", "free", "waiting", "resting", "parked", "done"}


def test_alive_is_an_exit_status(crawled: Crawled) -> None:
    """For what watches over processes: 0 while it runs, 1 afterwards; one line says which."""
    after = scrapy("status", "--alive", folder=crawled.folder)

    assert (crawled.alive.returncode, crawled.alive.stdout) == (0, f"{crawled.folder} is at work\n")
    assert (after.returncode, after.stdout) == (1, f"{crawled.folder} is not at work\n")


def test_which_reader_is_in_use(crawled: Crawled) -> None:
    """The start's log and ``scrapy status`` say the same, also after the crawl."""
    said = native.choice.sentence

    assert f"Page reader: {said}\n" in crawled.output
    assert f"Reader    {said}\n" in crawled.text
    assert crawled.status["reader"] == ask(crawled.folder, "status")["reader"] == said


def test_why_after_the_crawl(crawled: Crawled) -> None:
    """One URL of every state and reason that the small web makes, each with its rule or its capture."""
    port = crawled.web.port
    attempted = {str(row["url"]) for row in read_log(crawled.folder / "log")}
    redirected = [f"http://redirects.test:{port}/{name}" for name in ("permanent", "found", "other", "temporary")]
    deepest = f"http://trap.test:{port}/calendar/6"
    table = [
        ("http://[broken/", None, "refused", "invalid-url"),
        ("ftp://plain1.test/file", None, "refused", "unsupported-scheme"),
        (f"http://plain1.test:{port}/nobody/links/here", None, "never-seen", None),
        (f"http://sub.excluded.test:{port}/deep", None, "refused", "nevercrawl"),
        (f"http://etiquette.test:{port}/quiet/archive.zip", None, "refused", "extension"),
        (f"http://rules.test:{port}/private/1", None, "refused", "robots"),
        ("http://10.0.0.1/private", None, "refused", "private-address"),
        (f"http://trap.test:{port}/nest/nest/nest/nest/nest/", None, "refused", "trap"),
        (f"http://plain1.test:{port}/{'x' * 2000}", None, "refused", "url-too-long"),
        (f"http://etiquette.test:{port}/quiet/link", f"http://etiquette.test:{port}/rel", "refused", "nofollow"),
        (f"http://etiquette.test:{port}/quiet/meta", f"http://etiquette.test:{port}/meta", "refused", "nofollow"),
        (f"http://trap.test:{port}/calendar/7", f"http://trap.test:{port}/calendar/6", "refused", "too-deep"),
        (f"http://plain1.test:{port}/", None, "done", "fetched"),
        (next(url for url in redirected if url in attempted), None, "done", "redirect"),
        (f"http://plain1.test:{port}/gone.html", None, "done", "http-error"),
        (f"http://broken.test:{port}/garbage", None, "failed", "bad-response"),
        (f"http://down.test:{port}/", None, "waiting", "host-parked"),
    ]
    over = [
        f"http://formats.test:{port}/{name}" for name in ("kana", "cyrillic", "forbidden", "no-type", "found-inside")
    ]
    table += [(url, None, "refused", "host-budget") for url in over if url not in attempted][:1]
    assert deepest in attempted
    crawl = view(crawled.folder)
    with crawl.store() as store:
        why = crawl.why(store)
        answers = {url: why.url(url) for url, via, _, _ in table if via is None}

    wrong = [
        (url, str(answers[url].state), str(answers[url].reason))
        for url, via, state, reason in table
        if via is None and (answers[url].state, answers[url].reason or None) != (state, reason)
    ]
    assert wrong == []
    for url, via, state, reason in table:
        if via is not None:
            answer = ask(crawled.folder, "why", url, "--via", via)
            assert (answer["state"], answer["reason"], bool(answer["rule"])) == (state, reason, True)


def test_why_names_the_line_and_the_capture(crawled: Crawled) -> None:
    """As an operator reads it: the line of the list, the rule of robots.txt, the place in the archive, the cause."""
    port = crawled.web.port
    list_file = crawled.web.folder / "nevercrawl.txt"

    excluded = scrapy("why", f"http://excluded.test:{port}/", folder=crawled.folder).stdout
    fetched = ask(crawled.folder, "why", f"http://plain1.test:{port}/")
    parked = scrapy("why", f"http://down.test:{port}/", folder=crawled.folder).stdout
    host = scrapy("why", f"delay.test:{port}", folder=crawled.folder).stdout

    assert f"line 1 of {list_file}: excluded.test" in excluded
    captured = (crawled.folder / "warc" / fetched["warc"]).read_bytes()
    member = captured[fetched["offset"] : fetched["offset"] + fetched["length"]]
    assert gzip.decompress(member).startswith(b"WARC/1.1")
    assert "/robots.txt rate-limited" in parked or "/robots.txt http-error" in parked
    assert "robots.txt asks for 2 s" in host


def test_hosts_sort_by_any_column(crawled: Crawled) -> None:
    """A table for people, rows for programs, the same numbers in both."""
    rows = ask(crawled.folder, "hosts", "--sort", "done")
    _, table, beside, _ = scrapy("hosts", "--sort", "host", "--limit", "3", folder=crawled.folder)
    parked = ask(crawled.folder, "hosts", "--state", "parked")

    assert [row["done"] for row in rows] == sorted((row["done"] for row in rows), reverse=True)
    assert table.index("away.test") < table.index("broken.test")
    lines = [line.split("\t") for line in table.splitlines()]
    assert [len(line) for line in lines] == [len(lines[0])] * 4  # as many columns, and nothing else in the pipe
    assert [line[0] for line in lines[1:]] == sorted(row["host"] for row in rows)[:3]
    assert [row["host"] for row in ask(crawled.folder, "hosts", "--all")] == sorted(row["host"] for row in rows)
    assert f"3 of {len(rows)} hosts; --all has the others" in beside
    status = scrapy("status", folder=crawled.folder).stdout.splitlines()
    left = [" ".join(line.split()) for line in status if line.startswith(("Left", "Apart"))]
    assert left
    assert beside.splitlines()[-len(left) :] == left  # in the same words as status says it
    assert f"down.test:{crawled.web.port}" in [row["host"] for row in parked]


def test_status_after_it_ended(crawled: Crawled) -> None:
    """Not running, how it ended, and what is left apart."""
    status = ask(crawled.folder, "status")
    text = scrapy("status", folder=crawled.folder).stdout

    assert (status["running"], status["finish_reason"]) == (False, "finished")
    assert status["parked_queued"] >= 1
    assert "ended" in text
    assert "Apart     left alone: " in text
    assert "waits for\n" not in text + crawled.text
    left = r"^Left .* if nothing new is found\nSlowest   \S+: [\d,]+ URLs, one every "
    assert re.search(left, crawled.text, re.MULTILINE)
    assert {name: status["totals"][name] for name in ("pages", "bytes", "errors")} == {
        name: status[name] for name in ("pages", "bytes", "errors")
    }


PROSE = re.compile(r"\d[\d.,]* (?:of|URLs|bytes|ms|s|links|answers)\b|\d{4}-\d\d-\d\d \d\d:|at byte")


def numbers_in_prose(value: Any, name: str = "") -> list[str]:
    """The keys below which a number or a moment stands in a sentence; a rule's own words may have some."""
    if isinstance(value, dict):
        return [found for key, one in value.items() for found in numbers_in_prose(one, key)]
    return [name] if isinstance(value, str) and name not in ("rule", "url") and PROSE.search(value) else []


def test_why_in_machine_form(crawled: Crawled) -> None:
    """snake_case keys, ISO 8601 moments under ``…_at`` and ``…_until``, and every number as one."""
    port = crawled.web.port
    urls = ["plain1.test:{}/", "down.test:{}/", "rules.test:{}/private/1", "sub.excluded.test:{}/x", "trap.test:{}/"]
    answers = [ask(crawled.folder, "why", f"http://{url.format(port)}") for url in urls]
    answers += [ask(crawled.folder, "why", f"{name}.test:{port}") for name in ("delay", "down", "rules", "nowhere")]
    keys = {key for answer in answers for key in answer}

    assert [key for key in keys if not re.fullmatch(r"[a-z][a-z0-9_]*", key)] == []
    assert [(answer, found) for answer in answers if (found := numbers_in_prose(answer))] == []
    clocks = [answer[key] for answer in answers for key in answer if key.endswith(("_at", "_until")) and answer[key]]
    assert len(clocks) >= 5
    assert all(datetime.fromisoformat(moment).tzinfo is not None for moment in clocks)
    excluded, delayed = answers[3], answers[5]
    assert (excluded["list_line"], Path(excluded["list_file"]).name) == (1, "nevercrawl.txt")
    assert (delayed["pace_source"], delayed["robots_pause_seconds"], delayed["pace_seconds"]) == ("robots", 2.0, 2.0)
    assert delayed["robots_http"]["crawl_delay_seconds"] == 2.0
    assert delayed["max_urls"] == int(BOUNDS["SCOPE_MAX_URLS_PER_HOST"])


@pytest.mark.parametrize("columns", [40, 80, 132])
def test_hosts_on_a_narrow_terminal(crawled: Crawled, columns: int) -> None:
    """No line is longer than the terminal, no number is cut, and what has no room is named."""
    rows = {row["host"]: row for row in ask(crawled.folder, "hosts")}
    command = [sys.executable, "-m", "scrapy", "hosts", "-s", f"CRAWL_DIR={crawled.folder}"]

    text = on_a_terminal(command, columns)

    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    table = [line.split() for line in lines if ".test" in line or ".invalid" in line]
    assert len(table) == len(rows)
    heads = next(line.split() for line in lines if line.split()[:1] == ["host"])
    assert heads[:2] == ["host", "state" if columns >= 80 else "queued"]
    for cells in table:
        (row,) = (row for host, row in rows.items() if host.endswith(cells[0].lstrip("…")))
        assert cells[heads.index("queued")] == f"{row['queued']:,}"
    assert "…" not in "".join(cell for cells in table for cell in cells[1:])
    assert ("no room for" in text) == (columns < 132)


def on_a_terminal(command: list[str], columns: int) -> str:
    """What a command shows on a terminal of so many columns, without its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    shown = b""
    with subprocess.Popen(command, cwd=PROJECT, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        with open(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):  # EIO: the other end is closed
            while more := terminal.read(65_536):
                shown += more
    assert process.returncode == 0, shown
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r", "")


def test_a_crawl_file_that_is_newer_than_the_last_start_counts(crawled: Crawled) -> None:
    """Edited after the crawl has ended, before the next start: the commands judge as that start will."""
    path, far = crawled.folder / "crawl.toml", f"http://plain1.test:{crawled.web.port}/{'x' * 300}"
    before = path.read_text()
    assert ask(crawled.folder, "why", far)["state"] == "never-seen"

    path.write_text(before + "SCOPE_MAX_URL_LENGTH = 200\n")

    try:
        refused = ask(crawled.folder, "why", far)
        asked_otherwise = ask(crawled.folder, "why", far, "-s", "SCOPE_MAX_URL_LENGTH=3000")
    finally:
        path.write_text(before)
    assert (refused["reason"], refused["setting"], refused["limit"]) == ("url-too-long", "SCOPE_MAX_URL_LENGTH", 200)
    assert refused["value"] == len(far)
    assert asked_otherwise["state"] == "never-seen"


def test_forecast_needs_no_crawl(crawled: Crawled, tmp_path: Path) -> None:
    """Seeds, pace, ceiling and times, before anything is sent or made."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("https://a.example/\nhttps://a.example/2\nhttps://b.example/\nhttps://c.excluded.test/\n")
    never = f"NEVERCRAWL_FILE={crawled.web.folder / 'nevercrawl.txt'}"

    told = ask(tmp_path / "nothing", "forecast", str(seeds), "--pages", "700", "-s", never)

    assert (told["seeds"], told["excluded"], told["hosts"]) == (4, 1, 2)
    assert (told["pages_per_second_at_most"], told["largest_host"]) == (0.4, "a.example")
    assert told["seconds_by_pages_of_each_host"] == {"2": 10.0, "700": 3500.0}
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["why"], "Give a URL or a host, for example: scrapy why "),
        (["why", "http://a.test/"], "There is no folder"),
        (["hosts", "--sort", "colour"], "There is no column 'colour'"),
        (["status"], "There is no folder"),
        (["forecast"], "Give a file of seeds"),
        (["forecast", "/no/such/file.txt"], "does not exist"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """No traceback, status 2, and what to do."""
    ended = scrapy(*arguments, folder=tmp_path / "nowhere")

    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
