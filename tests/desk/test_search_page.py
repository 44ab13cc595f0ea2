"""The page of ``scrapy search --serve``: what strangers wrote stays text, and a browser can use it at any width."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from crawlerproject.batch.fulltext import Answers, Hit
from crawlerproject.commands.search import serve
from crawlerproject.desk.door import Door
from crawlerproject.desk.search_page import SearchPage
from crawlerproject.errors import OperatorError
from tests.commands.browser import axe, browser, window

__all__ = ["axe", "browser"]
EVIL = "<script>document.title='robbed'</script>\u202e"
MOMENT = "2026-11-02T03:04:05+00:00"
HITS = [
    Hit("http://a.test/x?q=ä b", f"Title {EVIL}", f"a *word* {EVIL}", 2.0, "en", MOMENT, "a.test", 3, 12),
    Hit("javascript:alert(1)", "Never", "", 1.5, "", "", "b.test", 0, 0),
    Hit(f"https://b.test/{'long' * 60}", "", "a *word*", 1.0, "", MOMENT, "b.test", 0, 0),
]  # fmt: skip


class Opened:
    """A page at a port, and what it asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, str, str]] = []
        self.door = Door("127.0.0.1", 0, "", SearchPage(self.find, 8080).answer)
        threading.Thread(target=self.door.serve_forever, daemon=True).start()

    def find(self, words: str, limit: int, host: str, language: str) -> Answers:
        self.asked.append((words, limit, host, language))
        if words == '"':
            raise OperatorError("The query cannot be understood.")
        return Answers(HITS if words != "none" else [], words.replace("wrod", "word"))

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Status and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.door.server_address[1], timeout=30)
        connection.request(method, path, headers=headers)
        came = connection.getresponse()
        text = came.read().decode()
        connection.close()
        return came.status, text


@pytest.fixture(scope="module")
def page() -> Iterator[Opened]:
    """One for all tests."""
    opened = Opened()
    yield opened
    opened.door.shutdown()
    opened.door.server_close()


def test_answers_link_to_page_copy_and_host(page: Opened) -> None:
    """Filters go along; what is no web address has no link; what strangers wrote is escaped."""
    status, text = page.get("/?q=wrod&host=a.test&language=en&n=20")

    assert status == 200
    assert page.asked[-1] == ("wrod", 20, "a.test", "en")
    assert 'href="http://a.test/x?q=ä b"' in text
    assert 'href="http://127.0.0.1:8080/crawl/20261102030405/http://a.test/x?q=%C3%A4%20b"' in text
    assert 'href="?q=wrod&amp;host=a.test&amp;language=en"' in text
    assert "and 3 of nearly the same text" in text
    assert "shown are answers to <b>word</b>" in text
    assert "<mark>word</mark>" in text
    assert not any(wrong in text for wrong in ("javascript:", "<script", "\u202e"))


def test_what_it_refuses(page: Opened) -> None:
    """A query that cannot be understood in a sentence; other addresses, names and orders at all."""
    assert page.get("/?q=%22")[0] == 400
    assert "Nothing found." in page.get("/?q=none&n=xx")[1]
    assert page.asked[-1] == ("none", 10, "", "")
    assert page.get("/else")[0] == 404
    assert page.get("/?q=x", Host="evil.test")[0] == 403
    assert page.get("/?q=x", "POST")[0] in {403, 411, 415}


def test_a_port_that_is_taken_is_said(page: Opened) -> None:
    """In a sentence that says what to do."""
    with pytest.raises(OperatorError, match=r"choose another with --serve\.$"):
        serve(page.door.server_address[1], 8080, page.find)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_can_use_it(page: Opened, browser: Browser, width: int) -> None:
    """By keyboard alone to the box, to the first answer and into it; nothing is wider than the window."""
    with window(browser, width) as shown:
        keyboard = shown.page.keyboard
        shown.page.goto(page.door.home)
        shown.page.wait_for_selector("#q:focus")  # autofocus comes with the first frame, later than the load
        keyboard.type("none")
        keyboard.press("Enter")
        shown.page.wait_for_selector("text=Nothing found.")
        _tab_to(shown.page, "#q")
        keyboard.type("wrod")  # what a Tab comes to is selected
        keyboard.press("Enter")
        shown.page.wait_for_selector(".answers")
        _tab_to(shown.page, ".skip")
        keyboard.press("Enter")
        for link in ("#a1 h2 a", "#a1 .foot a:nth-of-type(1)", "#a1 .foot a:nth-of-type(2)"):
            keyboard.press("Tab")
            assert shown.page.query_selector(f"{link}:focus"), link

        assert shown.page.title() == "wrod – Search of the crawl"
        assert shown.width <= width
        assert shown.clipped() == []
        assert shown.messages == []
        shown.page.goto(f"{page.door.home}?q=wrod")
        _tab_to(shown.page, "#a1 h2 a")
        with shown.page.expect_request("http://a.test/x?*"):
            keyboard.press("Enter")


def _tab_to(page: Page, what: str) -> None:
    """Press Tab, some times, until it has the focus."""
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.query_selector(f"{what}:focus"):
            return
    raise AssertionError(f"Tab does not come to {what}")


def test_it_is_accessible(page: Opened, browser: Browser, axe: str) -> None:
    """Empty, with answers, and with a refusal."""
    with window(browser, 390) as shown:
        for query in ("", "?q=wrod", "?q=%22"):
            shown.page.goto(page.door.home + query)
            assert shown.inaccessible(axe) == [], query
