"""The desk beside a running crawl of a hostile site: who is let in, what orders do, what strangers wrote stays text."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser
from scrapy.utils.project import get_project_settings

from crawlerproject.commands import desk as command
from crawlerproject.commands.why import found_of, lines
from crawlerproject.desk.desk_views import ORDERS, VIEWS, Desk, Ran
from crawlerproject.desk.door import MOST_BODY_BYTES, Door
from crawlerproject.rules.archive.warc_records import Render
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import RequestLog
from crawlerproject.stores.operator_files.control import read_pauses
from tests.commands.browser import axe as axe
from tests.commands.browser import browser as browser
from tests.commands.browser import window
from tests.commands.crawled import scrapy
from tests.commands.running import archive_of
from tests.crawls.operator.spoken_to import crawling, moved_on
from tests.hostile.arena import Arena, Asked, answer, arena
from tests.warc_samples import STARTED_AT
from tests.web.waiting import wait_until

TOKEN = "a token of this test"
EVIL = "</h3><script>document.title='robbed'</script>\u202e{{7*7}}"
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


class Visited(NamedTuple):
    """An answer of the desk."""

    status: int
    text: str
    headers: Mapping[str, str]
    body: bytes


class Opened:
    """A desk in a thread; its orders run in this process."""

    def __init__(self, root: Path) -> None:
        self.ran: list[list[str]] = []
        self.desk = Desk(root, get_project_settings(), self._run, lambda crawl, text: lines(found_of(crawl, text)))
        self.door = Door("127.0.0.1", 0, TOKEN, self.desk.answer)
        self.desk.word = self.door.form_word
        threading.Thread(target=self.door.serve_forever, daemon=True).start()

    def _run(self, folder: Path, arguments: Sequence[str]) -> Ran:
        self.ran.append([*arguments])
        done = scrapy(*arguments, "-s", f"NEVERCRAWL_USER_FILE={folder.parent}/never.txt", folder=folder)
        return Ran(" ".join(arguments), 0.0, done.returncode, done.stdout + done.stderr)

    def ask(self, path: str, body: bytes | None = None, *, token: str | None = TOKEN, **headers: str) -> Visited:
        """One request; with a ``body`` a POST of a form."""
        connection = http.client.HTTPConnection("127.0.0.1", self.door.server_address[1], timeout=60)
        given = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        if token is not None:
            given["Authorization"] = "Basic " + base64.b64encode(f"me:{token}".encode()).decode()
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if body is None else "POST", path, body, given)
        came = connection.getresponse()
        read = came.read()
        connection.close()
        return Visited(came.status, read.decode("utf-8", "replace"), dict(came.getheaders()), read)

    def order(self, what: str, crawl: str = "crawl", **form: str) -> Visited:
        """An order by a form of the desk's own."""
        body = urlencode({"word": self.door.form_word, **form}).encode()
        return self.ask(f"/crawl/{crawl}/{what}", body, Sec_Fetch_Site="same-origin", Origin=self.door.home.rstrip("/"))

    def close(self) -> None:
        """No more."""
        self.door.shutdown()
        self.door.server_close()


class Bench(NamedTuple):
    """A crawl that runs, and a desk for the folder that its folder is in."""

    web: Arena
    folder: CrawlDir
    opened: Opened


def evil_site(web: Arena) -> str:
    """A site of very many pages whose titles are markup, and one whose address is."""

    def make(asked: Asked) -> bytes | None:
        at = 0 if asked.path == "/" else int(asked.path[1:]) if asked.path[1:].isdigit() else None
        if at is None:
            return answer("<title>odd</title><p>An odd page.") if "script" in asked.path else None
        links = [f"/{near}" for near in range(at + 1, at + 6)] + (["/?<script>"] if at == 0 else [])
        said = " ".join(f"x{'abcdefghij'[at % 10] * (at // 10 + 1)}x{place}" for place in range(50))
        listed = "".join(f'<a href="{link}">{link}</a> ' for link in links)
        return answer(f"<!doctype html><title>{EVIL}</title><p>{said}<p>{listed}", mime="text/html; charset=utf-8")

    return web.site("evil.test", make)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A crawl, looked at and ordered about until one of the tests stops it."""
    with arena(tmp_path_factory.mktemp("desk")) as web, crawling(web, "-a", f"seeds={evil_site(web)}") as process:
        moved_on(web, "evil.test", 4)
        opened = Opened(web.folder)
        wait_until(lambda: "robbed" in opened.ask("/crawl/crawl/pages").text, "a page is shown", seconds=30)
        try:
            yield Bench(web, CrawlDir(web.folder / "crawl"), opened)
            assert opened.order("stop").status == 303
            assert process.wait(timeout=60) == 0
            assert ">ended</span>" in opened.ask("/").text
        finally:
            opened.close()


def test_nothing_is_shown_without_the_token(bench: Bench) -> None:
    """Not a page, a picture or a style sheet; a name that was pointed here is refused with it, too."""
    ask = bench.opened.ask
    for path in ("/", "/crawl/crawl/", "/crawl/crawl/file?of=log", "/desk.css", "/nowhere"):
        for token in (None, "", TOKEN[:-1], TOKEN + "x"):
            refused = ask(path, token=token)
            assert (refused.status, "evil" in refused.text) == (401, False)
            assert refused.headers["WWW-Authenticate"].startswith("Basic ")
    assert ask("/", Host="evil.example").status == 403
    assert ask("/", Authorization="Basic not base64").status == 401
    assert ask("/").status == 200


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_plain_html_of_ours_alone(bench: Bench, view: str) -> None:
    """Whole without its script; what strangers wrote is text; no script, style or handler stands in it."""
    found = bench.opened.ask(f"/crawl/crawl/{view}")

    assert found.status == 200
    assert found.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src")
    assert re.findall(r"<script[^>]*>", found.text) == ['<script src="/desk.js" defer>']
    assert not re.search(r"<[^>]+\s(?:style|on\w+)=", found.text)
    assert "\u202e" not in found.text
    if view in ("pages", "hosts", "log", "seeds"):
        assert "evil.test" in found.text
    if view == "pages":
        assert "&lt;script&gt;document.title=&#39;robbed&#39;" in found.text
        assert "\\u202e{{7*7}}" in found.text


def test_the_views_are_accessible(bench: Bench, browser: Browser, axe: str) -> None:
    """And the list of crawls, as axe-core judges."""
    word = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    with window(browser, 390) as seen:
        seen.page.set_extra_http_headers({"Authorization": f"Basic {word}"})
        for path in ("", *(f"crawl/crawl/{view}" for view in VIEWS)):
            seen.page.goto(bench.opened.door.home + path)
            assert seen.inaccessible(axe) == [], path


def test_orders_are_the_commands(bench: Bench) -> None:
    """A pause, a seed, a list's line and a resume, each as the command makes it; what it said is on the page."""
    opened, folder = bench.opened, bench.folder
    assert opened.order("pause", why="a look at the disk").headers["Location"] == "/crawl/crawl/"
    assert read_pauses(folder).crawl.endswith(": a look at the disk")
    wait_until(lambda: ">paused</span>" in opened.ask("/crawl/crawl/").text, "it is paused", seconds=30)
    opened.order("pause", host="one.test")
    assert "one.test" in read_pauses(folder).hosts
    opened.order("add", seeds="http://one.test/\r\nhttp://two.test/ scope=path\r\n")
    opened.order("never", host="three.test", why="their webmaster\nasked")
    opened.order("resume")
    opened.order("resume", host="one.test")
    assert read_pauses(folder).crawl == ""
    assert read_pauses(folder).hosts == {}
    assert "three.test  # their webmaster asked" in (folder.parent / "never.txt").read_text()
    assert opened.ran[-4] == ["add", "http://one.test/", "http://two.test/ scope=path"]
    shown = opened.ask("/crawl/crawl/").text
    assert "The running crawl took in 2 seeds after" in shown
    assert "Nothing is paused any more." in shown
    seeds = opened.ask("/crawl/crawl/seeds").text
    assert all(name in seeds for name in ("evil.test", "http://one.test/", "http://two.test/"))
    assert "evil.test" in opened.ask(f"/crawl/crawl/why?q=evil.test:{bench.web.port}").text


def test_only_the_desks_own_forms_order(bench: Bench) -> None:
    """No order by GET, without the form's word, from another page, too large, or of another kind."""
    opened, before = bench.opened, len(bench.opened.ran)
    word = urlencode({"word": opened.door.form_word}).encode()
    wrong = urlencode({"word": opened.door.form_word[:-1] + "x"}).encode()
    for order in ORDERS:
        path = f"/crawl/crawl/{order}"
        assert opened.ask(f"{path}?word={opened.door.form_word}").status == 404
        assert opened.ask(path, word, token=None).status == 401
        assert opened.ask(path, b"").status == opened.ask(path, wrong).status == 403
        for site in ("cross-site", "same-site", "none"):
            assert opened.ask(path, word, Sec_Fetch_Site=site).status == 403
        assert opened.ask(path, word, Origin="http://127.0.0.1:1").status == 403
        assert opened.ask(path, word, Origin="null").status == 403
        assert opened.ask(path, word, Content_Type="text/plain").status == 415
        assert opened.ask(path, word, Transfer_Encoding="chunked").status == 415
    assert opened.ask("/crawl/crawl/stop", word, Content_Length=str(MOST_BODY_BYTES + 1)).status == 413
    assert opened.order("restore").status == opened.order("stop", crawl="other").status == 404
    assert len(opened.ran) == before


@pytest.mark.parametrize(
    ("what", "form"),
    [
        ("never", {"host": "--remove", "why": "x"}), ("never", {"host": "a.test"}), ("pause", {"host": "--list"}),
        ("add", {"seeds": "--file=/etc/passwd"}), ("add", {"seeds": " \n"}),
        ("add", {"seeds": "http://a.test/\n" * 501}), ("pause", {"host": "a" * 5000}),
    ],
)  # fmt: skip
def test_a_value_is_no_option(bench: Bench, what: str, form: dict[str, str]) -> None:
    """No command is run, and the page says why not."""
    before = len(bench.opened.ran)

    bench.opened.order(what, **form)

    assert len(bench.opened.ran) == before
    assert "Not done</b>" in bench.opened.ask("/crawl/crawl/").text


def test_files_are_those_of_the_list(bench: Bench) -> None:
    """As they are, as attachments; nothing that is secret, no path out of the folder, not by a link either."""
    opened, folder = bench.opened, bench.folder
    log = next(folder.log.glob("requests-*.jsonl"))
    (folder / "out.log").symlink_to("/etc/hostname")
    try:
        listed = opened.ask("/crawl/crawl/files").text
        got = opened.ask(f"/crawl/crawl/file?of=log/{log.name}")

        assert f"log/{log.name}" in listed
        assert not re.search(r"run\.json|status\.json|crawl\.toml|control|out\.log|frontier", listed)
        assert json.loads(got.body.splitlines()[0])["url"].startswith("http://evil.test")
        assert got.headers["Content-Disposition"].startswith("attachment;")
        for name in ("run.json", "crawl.toml", "../log.txt", "/etc/hostname", "out.log", f"log/../log/{log.name}", ""):
            assert opened.ask(f"/crawl/crawl/file?of={quote(name)}").status == 404
        assert opened.ask("/crawl/%2e%2e/").status == opened.ask("/crawl/..%2fcrawl/").status == 404
        assert opened.ask("/crawl/crawl/picture?warc=../run.json&at=0").status == 404
        for at in ("-1", "9" * 5000, "\u0665"):
            assert opened.ask(f"/crawl/crawl/picture?warc=x&at={quote(at)}").status == 404
            assert opened.ask(f"/crawl/crawl/seeds?from={quote(at)}").status == 200
    finally:
        (folder / "out.log").unlink()


def test_a_rendered_page_has_its_picture(tmp_path: Path) -> None:
    """The screenshot's own record, and nothing else of the file; the title is what the browser made of the page."""
    folder = CrawlDir(tmp_path / "web")
    made = archive_of(folder)
    html = b"<html><head><title>As seen</title></head><body>text</body></html>"
    done = made.write_render(Render("http://a.test/", "<urn:uuid:1>", html, STARTED_AT, STARTED_AT + 1, [], PNG))
    made.close()
    log = RequestLog(folder.log, 31)
    log.write(STARTED_AT, {
        "time": "2026-11-28T00:00:00Z", "url": "http://a.test/", "status": None, "reason": "rendered", "rendered": True,
        "warc": done.filename, "offset": done.offset, "length": done.length, "bytes": 0, "depth": 0, "hop": "",
    })  # fmt: skip
    log.flush()
    opened = Opened(tmp_path)
    try:
        shown = opened.ask("/crawl/web/pages").text
        found = re.search(r'<img src="(picture\?[^"]+)" alt="As the browser showed http://a.test/"', shown)
        assert found is not None
        picture = opened.ask(f"/crawl/web/{found[1].replace('&amp;', '&')}")
        other = opened.ask(f"/crawl/web/picture?warc={done.filename}&at={done.offset}")
        whole = opened.ask(f"/crawl/web/file?of=warc/{done.filename}")
        folder.withdrawn.write_text("http://a.test/  2026-11-28 withdrawn  # asked back\n")
        gone = [opened.ask(f"/crawl/web/{path}") for path in ("pages", found[1].replace("&amp;", "&"))]
    finally:
        log.close()
        opened.close()

    assert "<h3>As seen</h3>" in shown
    assert (picture.body, picture.headers["Content-Type"]) == (PNG, "image/png")
    assert other.status == 404
    assert ("a.test" in gone[0].text, gone[1].status) == (False, 404)
    assert gzip.decompress(whole.body).startswith(b"WARC/1.1")


def test_it_says_when_it_listens_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One warning; on loopback none. What cannot be listened on is one sentence with status 2."""
    for address, warned in (("0.0.0.0", True), ("127.0.0.1", False)):
        door = Door(address, 0, TOKEN, lambda asked: pytest.fail("nobody asks"))
        door.serve_forever = lambda *_: None  # type: ignore[method-assign]  # nothing is to be served
        command.serve(door, Desk(tmp_path, get_project_settings(), lambda *_: pytest.fail(), lambda *_: []), TOKEN)
        said = capsys.readouterr()
        assert ("beyond this machine" in said.err) == warned
        assert TOKEN in said.out
    taken = Door("127.0.0.1", 0, TOKEN, lambda asked: pytest.fail("nobody asks"))
    port = str(taken.server_address[1])
    for arguments in (["--port", port], ["--address", "here"], ["--port", "99999"], [str(tmp_path / "none")]):
        done = scrapy("desk", *arguments, *([str(tmp_path)] if arguments[0].startswith("-") else []))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    taken.server_close()
