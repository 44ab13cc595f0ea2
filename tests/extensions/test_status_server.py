"""A running crawl watched: its page in a real browser, JSON, metrics; read-only and on loopback alone."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser
from prometheus_client.parser import text_string_to_metric_families

from crawlerproject.rules.printable import printable
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.watch.live import Sample
from tests.commands.browser import Window, window
from tests.commands.browser import axe as axe
from tests.commands.browser import browser as browser
from tests.commands.crawled import ask, scrapy
from tests.crawls.archive.raw_server import raw_server
from tests.reports.exposed import LABELS
from tests.web.graph import Answer
from tests.web.ports import free_port
from tests.web.running import crawl_command, small_settings, start, synthetic_web
from tests.web.waiting import wait_until

DEADLINE_SECONDS = 60.0
# What would run or turn the page round if anything of it were taken for markup.
HOSTILE = "</pre><script>document.title='robbed'</script><img src=x onerror=\"document.title='robbed'\">\u202e{{7*7}}"
EVIL = "evil.test"
# Three minutes before the crawl began, as an earlier process may have left it.
EARLIER_PAGES = 4321.0


class Watched:
    """The port of a running crawl."""

    def __init__(self, port: int, folder: Path, names: dict[str, str]) -> None:
        self.port = port
        self.folder = folder
        self.names = names  # host keys by name

    def ask(
        self,
        path: str,
        method: str = "GET",
        host: str = "",
        address: str = "127.0.0.1",
        body: bytes = b"",
        **headers: str,
    ) -> tuple[int, bytes, str]:
        """Status, body and the content security policy."""
        connection = http.client.HTTPConnection(address, self.port, timeout=40)
        named = {"Host": host or f"127.0.0.1:{self.port}"}
        connection.request(method, path, body, headers=named | {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Content-Security-Policy") or ""

    def json(self, path: str) -> Any:
        """The JSON at a path."""
        status, body, _ = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def url(self, route: str = "") -> str:
        """Of the page."""
        return f"http://127.0.0.1:{self.port}/{route}"


def evil_answers() -> dict[str, Answer]:
    """A site whose texts are markup."""
    robots = f"User-agent: *\nDisallow: /secret\n# {HOSTILE}\n".encode()
    page = b'<a href="/bad?<script>document.title=1</script>">a</a> <a href="/secret">b</a>'

    def whole(body: bytes, kind: bytes) -> Answer:
        return Answer(
            200, (b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)), body)
        )

    return {
        "/robots.txt": whole(robots, b"text/plain"),
        "/": whole(page, b"text/html"),
        "/bad?%3Cscript%3Edocument.title=1%3C/script%3E": Answer(
            0, (b"<script>document.title='robbed'</script>\r\n\r\n",), close=True
        ),
    }


def earlier_hour(now: float) -> dict[str, Any]:
    """What a process that ended before kept."""
    row = Sample(now - 180, 5.0, EARLIER_PAGES, 1e6, 0.0, 5000.0, 77, 3, 10**8)
    return {"format": 1, "columns": Sample._fields, "rows": [list(row)]}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A slow crawl of the small web and of a hostile site, which says that it can be watched."""
    folder = tmp_path_factory.mktemp("watched")
    with synthetic_web(folder / "web") as web, raw_server(evil_answers()) as evil:
        port = free_port()
        # One host is so slow that the crawl outlasts the tests, also on a busy machine.
        (folder / "pace").write_text("plain2.test delay_seconds=60\n")
        settings = {"PACE_PRESET": "fixed5", "HOST_PACE_FILE": str(folder / "pace"), "WATCH_PORT": str(port)}
        settings = {**small_settings(web), **settings}
        (folder / "crawl").mkdir()
        CrawlDir(folder / "crawl").last_hour.write_text(json.dumps(earlier_hour(time.time())))
        seeds = (web.folder / "seeds.txt").read_text() + f"http://{EVIL}:{evil.port}/\n"
        (folder / "seeds.txt").write_text(seeds)
        (folder / "hosts").write_text((web.folder / "hosts").read_text() + f"127.0.0.1\t{EVIL}\n")
        command = crawl_command(folder / "seeds.txt", folder / "crawl", folder / "hosts", settings)
        with (folder / "crawl.log").open("wb") as output:
            process = start(command, output)
        try:
            names = {key.partition(":")[0]: key for key in re.findall(r"https?://([^/\s]+)", seeds)}
            watched = Watched(port, folder / "crawl", names)
            wait_until(lambda: has_begun(watched), log=folder / "crawl.log", process=process)
            yield watched
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_SECONDS) == 0
            log = (folder / "crawl.log").read_text()
            assert f"Watch this crawl at http://127.0.0.1:{port}/" in log
            assert "Traceback" not in log
            kept = json.loads(CrawlDir(folder / "crawl").last_hour.read_text())
            assert len(kept["rows"]) > 2
            assert CrawlDir(folder / "crawl").last_hour.stat().st_mode & 0o077 == 0
        finally:
            process.kill()


def has_begun(watched: Watched) -> bool:
    """Whether the crawl has pages to show, and of the hostile site all that there is."""
    try:
        live = watched.json("/live.json")
    except (OSError, http.client.HTTPException):
        return False
    log = "".join(path.read_text() for path in (watched.folder / "log").glob("requests-*.jsonl"))
    return len(live["rows"]) > 1 and bool(live.get("allowed")) and "/bad" in log


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """What Prometheus' own parser reads."""
    families = text_string_to_metric_families(text.decode())
    return {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}


def test_metrics_are_what_the_crawl_says(watched: Watched) -> None:
    """They agree with the status, and promises are kept."""
    before = watched.json("/status.json")
    found = samples(watched.ask("/metrics")[1])
    after = watched.json("/status.json")

    assert before["stats"]["pages/fetched"] <= found["crawler_attempts_total", "fetched"]
    assert found["crawler_attempts_total", "fetched"] <= after["stats"]["pages/fetched"]
    answers = sum(value for name, value in found.items() if name[0] == "crawler_answers_total")
    assert sum(before["statuses"].values()) <= answers <= sum(after["statuses"].values())
    assert found["crawler_first_byte_seconds_count",] > 0
    assert found["crawler_first_byte_seconds_bucket", "+Inf"] == found["crawler_first_byte_seconds_count",]
    assert found["crawler_pause_excess_seconds_count",] > 0
    assert found["crawler_short_pauses_total",] == found["crawler_pace_guard_refused_total",] == 0
    assert found["crawler_paused",] == 0
    assert found["crawler_hosts", "waiting"] > 0
    assert found["crawler_allowed_answers_per_second",] > 0
    assert found["process_resident_memory_bytes",] > 10_000_000
    assert found["crawler_disk_free_bytes",] > 0


def test_metrics_are_named_as_prometheus_wants(watched: Watched) -> None:
    """Of every family help and type are said once; counters end in _total; units stand in names."""
    text = watched.ask("/metrics")[1].decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.MULTILINE))
    helps = re.findall(r"^# HELP (\S+) \S", text, flags=re.MULTILINE)

    assert sorted(types) == sorted(helps)
    assert {name for name, kind in types.items() if kind == "counter"} == {n for n in types if n.endswith("_total")}
    assert not [name for name in types if re.search(r"_(ms|kb|mb|minutes|percent)\b", name)]


def test_labels_have_few_words(watched: Watched) -> None:
    """None is a host, a URL or anything else of which the web has without end."""
    families = list(text_string_to_metric_families(watched.ask("/metrics")[1].decode()))
    shown = {label for family in families for sample in family.samples for label in sample.labels.items()}

    assert len(shown) > 40
    assert [(name, word) for name, word in shown if name not in LABELS or word not in LABELS[name]] == []


# Colours alone depend on the scheme: each width and each scheme once.
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_in_a_browser(watched: Watched, browser: Browser, width: int, scheme: str) -> None:
    """Every part is there, nothing sticks out or is cut, nothing is asked elsewhere, no error and no breach."""
    with window(browser, width, scheme) as seen:
        seen.page.goto(watched.url())
        seen.wait("document.querySelectorAll('#table tbody tr').length > 3")

        assert_good(seen, watched, width)
        text = seen.page.inner_text("body")
        assert "Bound by " in text
        assert "plain1.test" in text
        assert "pages/s" in seen.page.inner_text("#pages")
        assert "Politeness allows" in seen.page.inner_text("#pages")
        assert seen.page.locator("#pages svg path.line").count() == 1
        for chart in ("pages", "bytes", "queue"):
            marks = seen.page.locator(f"#{chart} svg text:not([text-anchor])").all_text_contents()
            assert len(set(marks)) == len(marks) > 0
            assert all(re.search(r"\d.*(pages/s|B/s|URLs)$", mark) for mark in marks)
        assert "connect-refused" in seen.page.inner_text("#errors")
        assert "200 OK" in seen.page.inner_text("#answers")
        assert contrast_faults(seen) == []


def test_the_pages_are_accessible(watched: Watched, browser: Browser, axe: str) -> None:
    """That of the crawl, and that of one host."""
    views = {"": "#table tbody tr", f"#/host/{quote(watched.names['plain1.test'])}": "#host table tbody tr"}
    with window(browser, 390) as seen:
        for view, row in views.items():
            seen.page.goto(watched.url(view))
            seen.wait(f"document.querySelectorAll('{row}').length > 0")
            assert seen.inaccessible(axe) == [], view


def test_it_updates_itself_and_says_when_it_cannot(watched: Watched, browser: Browser) -> None:
    """Figures change without a reload; with the crawl out of reach the page says so and takes it up again."""
    with window(browser, 390) as seen:
        seen.page.goto(watched.url())
        seen.wait("document.querySelectorAll('#figures dd').length > 3")
        seen.page.evaluate("document.querySelector('#figures dd').textContent = 'old'")
        seen.wait("document.querySelector('#figures dd').textContent !== 'old'")

        seen.page.context.set_offline(True)
        seen.wait("document.body.classList.contains('stale')")
        assert "cannot be reached" in seen.page.inner_text("#bound")
        seen.page.context.set_offline(False)
        seen.wait("!document.body.classList.contains('stale')")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_of_one_host(watched: Watched, browser: Browser, width: int) -> None:
    """Reached from the table by keyboard or mouse: pace, pauses, robots.txt, last requests."""
    key = watched.names["plain1.test"]
    with window(browser, width) as seen:
        seen.page.goto(watched.url(f"#/host/{quote(key)}"))
        seen.wait("document.querySelectorAll('#host table tbody tr').length > 0")

        assert_good(seen, watched, width)
        text = seen.page.inner_text("#host")
        assert key in text
        assert "5.0 s" in text
        assert "User-agent" in seen.page.inner_text("#host pre")
        assert "/robots.txt" in text
        assert seen.page.locator("#pauses svg rect.kept, #pauses .note").count() > 0
        assert seen.page.locator("#pauses svg rect.short").count() == 0


def test_why_is_what_the_command_says(watched: Watched, browser: Browser) -> None:
    """The same words for pages that were fetched, refused and never seen, in JSON and on the page."""
    evil = watched.names[EVIL]
    urls = [f"http://{evil}/", f"http://{evil}/secret", "mailto:me@example.org"]

    for url in urls:
        found = watched.json(f"/why.json?q={quote(url, safe='')}")
        assert found["answer"] == ask(watched.folder, "why", url)
    assert found["lines"] == scrapy("why", url, folder=watched.folder).stdout.splitlines()
    with window(browser, 390) as seen:
        seen.page.goto(watched.url())
        seen.page.fill("#q", urls[1])
        seen.page.press("#q", "Enter")
        seen.wait("document.querySelector('#why .pill') !== null")
        text = seen.page.inner_text("#why")
        assert "refused" in text
        assert "Disallow: /secret" in text
        assert_good(seen, watched, 390)


def test_what_strangers_wrote_is_text(watched: Watched, browser: Browser) -> None:
    """Robots.txt, URLs and questions that are markup: nothing runs, nothing turns the page round."""
    key = watched.names[EVIL]
    with window(browser, 390) as seen:
        seen.page.goto(watched.url(f"#/host/{quote(key)}"))
        seen.wait("document.querySelector('#host pre') !== null")
        robots = seen.page.inner_text("#host pre")
        assert "<script>document.title='robbed'</script>" in robots
        assert "\u202e" not in robots
        assert "\\u{202e}" in robots
        assert "%3Cscript%3E" in seen.page.inner_text("#host table")
        for route in (f"#/why/{quote(HOSTILE)}", f"#/host/{quote(HOSTILE)}", "#/why/%", "#/host/__proto__"):
            seen.page.goto(watched.url(route))
            seen.wait("!document.body.innerText.includes('Looking …')")
            assert seen.page.locator("main img, main script, main iframe").count() == 0
        assert "robbed" not in seen.page.title()
        assert_good(seen, watched, 390)
        # Nothing of the page can make markup of a string, even by mistake: the browser holds it.
        assert seen.page.evaluate("(() => { try { document.body.innerHTML = '<b>'; } catch { return 'refused' } })()")


def test_the_page_and_the_terminal_escape_alike(watched: Watched, browser: Browser) -> None:
    """What moves, hides or re-orders text is the same set of characters in both."""
    wanted = [code for code in range(0x110000) if printable(chr(code)) != chr(code)]
    with window(browser, 390) as seen:
        seen.page.goto(watched.url())
        found = seen.page.evaluate(
            """() => Array.from({ length: 0x110000 }, (_, code) => code)
              .filter((code) => { const letter = String.fromCodePoint(code); return shown(letter) !== letter; })"""
        )

    assert found == wanted


def test_it_is_read_only_and_for_this_machine(watched: Watched) -> None:
    """No method changes anything; another name (DNS rebinding) and other sites' pages are refused."""
    assert watched.ask("/", "POST")[0] == 405
    assert watched.ask("/", "DELETE")[0] == 501
    assert watched.ask("/", "POST", body=b"a" * 200_000)[0] == 413
    assert watched.ask("/", body=b"a")[0] == 413
    assert watched.ask("/", host="evil.example")[0] == 403
    assert watched.ask("/why.json?q=x", Sec_Fetch_Site="cross-site")[0] == 403
    assert watched.ask("/", Sec_Fetch_Site="cross-site")[0] == 200  # a link that leads here
    assert watched.ask("/nothing")[0] == 404
    for path in ("/", "/live.json", "/nothing", "/why.json"):
        assert watched.ask(path)[2].startswith("default-src 'none'; script-src 'self'")
    with pytest.raises(ConnectionRefusedError):
        watched.ask("/", address="127.0.0.2")


def test_questions_are_bounded(watched: Watched) -> None:
    """Unfit ones are refused in one sentence; tables are short; what is shown already is not sent again."""
    assert watched.ask("/hosts.json?by=password")[0] == 400
    assert watched.ask("/why.json")[0] == 400
    assert watched.ask(f"/why.json?q={'a' * 5000}")[0] == 400
    assert watched.ask("/live.json?since=soon")[0] == 400
    assert 0 < len(watched.json("/hosts.json?by=left")["hosts"]) <= 50
    assert "error" in watched.json("/host.json?name=a/b")
    rows = watched.json("/live.json")["rows"]
    assert watched.json(f"/live.json?since={rows[-2][0]}")["rows"][0] == rows[-1]


def test_the_last_hour_survives_a_restart(watched: Watched) -> None:
    """What an earlier process kept stands before what this one has counted."""
    live = watched.json("/live.json")

    assert live["rows"][0][live["columns"].index("pages")] == EARLIER_PAGES
    assert all(before[0] < after[0] for before, after in zip(live["rows"], live["rows"][1:], strict=False))


def test_no_password_is_shown(watched: Watched) -> None:
    """Settings reach the process that answers, and not its command line; no answer has them."""
    watched.json(f"/why.json?q={quote('http://x.example/')}")
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]

    answering = [line for line in lines if b"looking_process" in line]
    assert answering
    assert not any(b"CRAWLER_" in line or str(watched.folder).encode() in line for line in answering)


def test_a_taken_port_stops_no_crawl(tmp_path: Path) -> None:
    """The crawl says so in one line and goes on."""
    with socket.create_server(("127.0.0.1", 0)) as taken, synthetic_web(tmp_path / "web") as web:
        settings = {**small_settings(web), "WATCH_PORT": str(taken.getsockname()[1]), "SCOPE_MAX_DEPTH": "0"}
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        with (tmp_path / "crawl.log").open("wb") as output:
            assert start(command, output).wait(DEADLINE_SECONDS) == 0

    log = (tmp_path / "crawl.log").read_text()
    assert "No live page at 127.0.0.1" in log
    assert "Traceback" not in log


def assert_good(seen: Window, watched: Watched, width: int) -> None:
    """No error, no breach of the policy, nothing from elsewhere, nothing wider than the window or cut."""
    assert seen.messages == []
    assert [url for url in seen.requests if not url.startswith((watched.url(), "data:"))] == []
    assert seen.width <= width
    assert seen.clipped() == []


def contrast_faults(seen: Window) -> list[str]:
    """Texts below 4.5 to 1 (WCAG 2.2, 1.4.3) against the first ground below them that has a colour."""
    found: list[str] = seen.page.evaluate(_CONTRAST)
    return found


_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.closest(".clip, label") || ![...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(node);
    let ground = node;
    while (ground && rgb(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
    const a = light(rgb(node.ownerSVGElement ? style.fill : style.color)), b = light(rgb(getComputedStyle(ground || document.body).backgroundColor));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${node.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""  # noqa: E501
