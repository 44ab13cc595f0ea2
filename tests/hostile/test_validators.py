"""ETags and Last-Modified that are no validators: what is sent back a week later, byte by byte, by the server's log."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.hostile.arena import Arena, Asked, arena, page
from tests.hostile.ledger import pays
from tests.web.running import crawl_command, finish, start

#: What a page's answer names as its ETag; whether it may come back.
TAGS = {
    "/plain": (b'"v1"', True),
    "/weak": (b'W/"v1"', True),
    "/bare": (b"v1", True),
    "/latin": (b'"r\xe9sum\xe9"', True),
    "/control": (b'"a\x01\x1bb"', False),
    "/tab": (b'"a\tb"', False),
    "/star": (b"*", False),
    "/starred": (b'*, "a"', False),
    "/member": (b'"a", *', False),
    "/long": (b'"' + b"x" * 60_000 + b'"', False),
}
DATES = {
    "/date": (b"Sun, 06 Nov 1994 08:49:37 GMT", True),
    "/date-long": (b"Sun, 06 Nov 1994 08:49:37 GMT" + b" (x)" * 10_000, False),
    "/date-control": (b"Sun, 06 Nov 1994 08:49:37 GMT\x07", False),
}
LATER_DAYS = "8"


class Site:
    """Pages with these headers; it keeps what comes back, by path and in order."""

    def __init__(self) -> None:
        self.sent_back: dict[str, list[bytes]] = {}

    def make(self, asked: Asked) -> bytes | None:
        """One answer."""
        if asked.path == "/":
            return page(*TAGS, *DATES, text="front")
        if asked.path not in TAGS and asked.path not in DATES:
            return None
        lines = asked.head.split(b"\r\n")
        self.sent_back.setdefault(asked.path, []).extend(
            line.partition(b": ")[2] for line in lines if line.lower().startswith((b"if-none-match:", b"if-modified-"))
        )
        name = b"ETag" if asked.path in TAGS else b"Last-Modified"
        value = (TAGS.get(asked.path) or DATES[asked.path])[0]
        head, _, body = page(text=f"the page of {asked.path[1:]} and of no other").partition(b"\r\n\r\n")
        return b"%b\r\n%b: %b\r\n\r\n%b" % (head, name, value, body)


def recrawled(web: Arena) -> None:
    """Visit the known pages of the crawl again, some days later."""
    settings = {"PACE_MIN_SECONDS": "0.05", "PACE_START_SECONDS": "0.05", "PACE_IP_SECONDS": "0"}
    settings |= {"RENDER": "never", "NEVERCRAWL_FILE": "", "RECRAWL_FULL_FETCH_SHARE": "0"}
    command = crawl_command(web.folder / "none", web.folder / "crawl", web.folder / "hosts", settings)
    arguments = command[command.index("web") + 1 :]
    arguments[1] = "mode=recrawl"  # instead of seeds
    log = web.folder / "again.log"
    with log.open("wb") as output:
        began = time.monotonic()
        process = start([sys.executable, "-m", "tests.web.later", LATER_DAYS, "crawl", "web", *arguments], output)
        spent = finish(process, began)
    assert spent.status == 0, log.read_text()[-3000:]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Crawled, and visited again."""
    made = Site()
    folder: Path = tmp_path_factory.mktemp("validators")
    with arena(folder) as web:
        seed = web.site("tags.test", made.make)
        web.crawl(seed)
        assert not any(made.sent_back.values())
        recrawled(web)
        assert all(len([path for path in web.paths("tags.test") if path == asked]) == 2 for asked in (*TAGS, *DATES))
    return made


@pytest.mark.parametrize("path", [*TAGS, *DATES])
def test_only_what_may_be_is_sent_back(site: Site, path: str) -> None:
    """The bytes that came, or nothing: the page is then asked for in full."""
    value, good = TAGS.get(path) or DATES[path]
    assert site.sent_back[path] == ([value] if good else [])


def test_what_the_longest_costs(site: Site) -> None:
    """For the table of attacks."""
    sent = [value for values in site.sent_back.values() for value in values]
    pays(
        "an ETag of 60,000 bytes, of control characters, or a star",
        "the crawl",
        max(map(len, sent)),
        "bytes sent back",
        at_most=256,
    )
