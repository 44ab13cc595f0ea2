"""Typical mistakes of newcomers: each is answered in one line that says what to do, and with status 2.

All in this process, and refused before anything is made, opened or asked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.spiders.web import WebSpider
from tests.commands.crawled import started
from tests.commands.running import Done, scrapy
from tests.web.running import PROJECT

NO_FOLDER = "There is no folder {nowhere}; name a crawl's folder, or set CRAWL_DIR."
MISTAKES: list[tuple[str, str]] = [
    ("crawl", "error: Name a spider (plan, web), for example: scrapy crawl web -a seeds=seeds.txt"),
    ("crawl -a seeds={seeds}", "error: Name a spider"),
    ("crawl -a", "error: argument -a: expected one argument"),
    ("crawl web {seeds}", "error: Name one spider, not web and {seeds}; seeds are given with -a: scrapy crawl web -a"),
    ("crawl {seeds}", "Seeds are given with -a seeds=…."),
    ("crawl wbe", "error: There is no spider 'wbe'; there are plan, web."),
    ("crawl web", "There are no seeds; give a file or URLs"),
    ("crawl web --seeds={seeds}", "There is no option --seeds={seeds}; scrapy crawl -h lists them all."),
    ("crawl web --seeds {seeds}", "There is no option --seeds;"),
    ("crawl web -a seeds", "Invalid -a value, use -a NAME=VALUE"),
    ("crawl web -a seeds=", "There are no seeds"),
    ("crawl web -a sedes={seeds}", "seeds was probably meant"),
    ("crawl web -s seeds={seeds}", "There are no seeds"),
    ("crawl web -a seeds={nowhere}", "{nowhere} does not exist; give a file with one URL a line, or URLs."),
    ("crawl web -a seeds={folder}", "are a folder; give a file with one URL a line."),
    ("crawl web -a seeds={empty}", "No usable seed in {empty}"),
    ("crawl web -a seeds=ftp://a.test/", "line 1 is unsupported-scheme; give at least one http or https URL."),
    ("crawl web -a seeds={seeds} -a scope=site", "The scope 'site' is unknown; use one of any, domain, host, path."),
    ("crawl web -a seeds={seeds} -a max_pages=many", "max_pages is 'many'; give for example 1000, or 0 for no limit."),
    ("crawl web -a seeds={seeds} -a max_page=5", "max_pages was probably meant"),
    ("crawl web -a seeds={seeds} -a depth=3", "is no argument of the spider web; it has seeds, scope,"),
    ("crawl web -a seeds={seeds} -a mode=again", "The mode 'again' is unknown; use one of crawl, recrawl."),
    ("crawl web -a seeds={seeds} -a budget=5", "give it with -a mode=recrawl."),
    ("crawl web -a seeds={seeds} -a include=calendar", "would match no URL; * stands for any characters: *calendar*."),
    ("crawl web -a mode=recrawl", "There is no crawl in {nowhere} to come back to; crawl first"),
    ("crawl web -a seeds={seeds}", "needs a way to reach you"),
    ("crawl web -a seeds={seeds} -s CRAWLER_CONTACT=jürgen@a.test", "must be plain ASCII"),
    ("crawl web -a seeds={seeds} -s CRAWLER_NAME=Bot/1", "CRAWLER_NAME is 'Bot/1'; use letters, digits, - and _ only"),
    ("crawl web -a seeds={seeds} -s PACE_PRESET=fast", "PACE_PRESET"),
    ("crawl web -a seeds={seeds} -s PACE_MIN_SECONDS=quick", "PACE_MIN_SECONDS"),
    ("crawl web -a seeds={seeds} -s PACE_MIN_SECONDS=-1", "PACE_MIN_SECONDS"),
    ("crawl web -a seeds={seeds} -s PACE_PRESETT=mirror", "PACE_PRESET"),
    ("crawl web -a seeds={seeds} -s RENDER=yes", "RENDER is 'yes'; use one of"),
    ("crawl web -a seeds={seeds} -s FETCH_TIMEOUT_SECONDS=0", "FETCH_TIMEOUT_SECONDS is 0; it must be above zero."),
    (
        "crawl web -a seeds={seeds} -s FRONTIER_MAX_IN_FLIGHT=lots",
        "FRONTIER_MAX_IN_FLIGHT is 'lots'; it must be a whole",
    ),
    ("crawl web -a seeds={seeds} -s NEVERCRAWL_FILE={nowhere}", "make it (it may be empty)"),
    ("crawl web -a seeds={seeds} -s FETCH_CA_FILE={seeds}", "cannot be read as PEM certificates"),
    ("crawl web -a seeds={seeds} -s FETCH_DNS_SERVERS=dns.test", "give IP addresses, as 9.9.9.9."),
    ("crawl web -a seeds={seeds} -s FETCH_ALLOW_NETWORKS=localhost", "FETCH_ALLOW_NETWORKS"),
    ("crawl web -a seeds={seeds} -s WATCH_PORT=99999", "WATCH_PORT is 99999; it must be from 0 to 65,535."),
    ("crawl web -a seeds={seeds} -s DOWNLOAD_BIND_ADDRESS=192.0.2.1", "use an IP address of this machine."),
    ("crawl web -a seeds={seeds} -s LOG_LEVEL=LOUD", "use DEBUG, INFO, WARNING, ERROR or CRITICAL."),
    ("crawl web -a seeds={seeds} -s LOG_FILE={nowhere}/log", "cannot be written (No such file or directory)"),
    ("crawl web -a seeds={seeds} -s ITEM_PIPELINES=x", "ITEM_PIPELINES is 'x'; write it as a JSON object"),
    ("status -s EXTENSIONS=[1]", "EXTENSIONS is '[1]'; write it as a JSON object"),
    ("crawl web -a seeds={seeds} -s RENDER_PROXIES=foo {reach}", "RENDER_PROXIES has 'foo' (not a proxy address)"),
    ("crawl web -a seeds={seeds} -s RENDER_PROXIES=socks5://a:1 {reach}", "only http:// proxies are supported"),
    ("crawl web -a seeds={seeds} -s HOOK_COMMAND={nowhere} {reach}", "names '{nowhere}', and there is no such program"),
    ("crawl web -a seeds={seeds} -s X", "Invalid -s value, use -s NAME=VALUE"),
    ("crawl web -a seeds={seeds} -o items.docx", "Unrecognized output format 'docx'"),
    ("crawl plan", "There is no plan; make one with scrapy plan and give it with -a plan=FILE."),
    *(
        (f"{command} --spider wbe http://a.test/", "error: There is no spider 'wbe'; there are plan, web.")
        for command in ("fetch", "parse", "shell", "view")
    ),
    ("parse -c body http://a.test/", "error: WebSpider has no method body."),
    ("parse -r http://a.test/", "error: WebSpider has no rules; name a method of it with --callback."),
    ("runspider", "error: Name one file with a spider, for example: scrapy runspider titles.py"),
    ("runspider {nowhere}", "error: There is no file {nowhere}; name a Python file with a spider in it."),
    ("runspider {seeds} -s PACE_PRESET=fast", "error: PACE_PRESET must be one of"),
    ("fleet web", "scrapy fleet runs the web spider: give its arguments with -a"),
    ("fleet --workers 0", "--workers must be at least 1."),
    *((command, NO_FOLDER) for command in ("status", "hosts", "report", "verify {nowhere}", "wacz {nowhere}")),
    *(
        (command, NO_FOLDER)
        for command in ("why a.test", "requests a.test", "show http://a.test/", "pause", "add {seeds}")
    ),
    *((command, NO_FOLDER) for command in ("export {nowhere}", "load {nowhere}", "rank {nowhere}", "replay {nowhere}")),
    *((command, NO_FOLDER) for command in ("reparse web {nowhere}", "state backup {nowhere}/b", "recover")),
    ("status web", "scrapy status takes no argument; -s CRAWL_DIR=DIR names another crawl."),
    ("status --josn", "There is no option --josn; scrapy status -h lists them all."),
    ("hosts --sort colour", "There is no column 'colour'; sort by one of host, state,"),
    ("hosts --limit few", "argument --limit: invalid int value: 'few'"),
    ("hosts --state sleeping", "argument --state: invalid choice: 'sleeping'"),
    ("why", "Give a URL or a host, for example: scrapy why https://example.org/page"),
    ("robots a_name", "Give an absolute URL (invalid-url), for example: scrapy robots https://example.org/page"),
    ("never example.org", "Say who asked and why"),
]


def told(text: str, folder: Path) -> str:
    """With the names of what is there, and of what is not."""
    names = {name: folder / name for name in ("seeds", "empty", "folder", "nowhere")}
    return text.format(**names, reach="-s CRAWLER_CONTACT=a@b.test")


def run(text: str, folder: Path) -> Done:
    """The command, looking at a crawl that is not there."""
    return scrapy(*told(text, folder).split(" "), "-s", f"CRAWL_DIR={folder / 'nowhere'}")


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES, ids=[mistake for mistake, _ in MISTAKES])
def test_a_mistake_has_one_line(mistake: str, sentence: str, tmp_path: Path) -> None:
    """It says what to do; no usage, no traceback, nothing on standard output, and nothing is made."""
    (tmp_path / "seeds").write_text("http://a.test/\n")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()

    ended = run(mistake, tmp_path)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert told(sentence, tmp_path) in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "nowhere").exists()
    assert WebSpider.start.__qualname__ == "WebSpider.start"  # Scrapy's command puts another into the class


def test_the_table_has_sixty() -> None:
    """And each is another."""
    assert len({mistake for mistake, _ in MISTAKES}) == len(MISTAKES) >= 60


def test_a_private_address_says_how_it_is_let_in() -> None:
    """A site of one's own is the first that many try."""
    ended = started("fetch", "http://10.1.2.3/", "-s", "FETCH_ALLOW_NETWORKS=")

    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "private-address" in line
    assert "FETCH_ALLOW_NETWORKS=10.0.0.0/8" in line


def test_an_older_python_is_one_sentence() -> None:
    """Before anything that it cannot read is imported."""
    code = "import sys; sys.version_info = (3, 10, 4); import crawlerproject"

    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False)

    assert ended.stderr == "The crawler needs Python 3.11 or later; this is 3.10.\n"
    assert ended.returncode == 1
