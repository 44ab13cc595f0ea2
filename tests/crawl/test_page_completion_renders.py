"""How renders end, and what becomes of pages that want a browser where there is none."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import LeaseResult, Rendered
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.warc_reader import PlainResponse
from crawlerproject.stores.logs.request_log import read_log
from tests.crawl.sessions import HOST, Bench, page_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A crawl that renders."""
    bench = Bench(tmp_path, RENDER="auto")
    bench.frontier.renders.closed = ""
    bench.add(f"{HOST}/app", f"{HOST}/other")
    return bench


def to_render(bench: Bench) -> Lease:
    """The lease of a page that was fetched and now meets the browser."""
    shell = page_of(bench.page_lease(), bench.now, body=b"<script>", shell=(3, 1))
    bench.session.pages.finish(shell)
    bench.commit()
    while not (lease := bench.page_lease()).row.kind.is_render:
        bench.session.pages.finish(page_of(lease, bench.now))
    return lease


def rendered(lease: Lease, bench: Bench, html: bytes = b"<p>whole") -> Rendered:
    """What the browser made of it."""
    made = Rendered(lease.row.url, html=html, plain_id="<urn:uuid:0>")
    made.started_at, made.ended_at = bench.now, bench.now + 1
    return made


def test_a_shell_is_archived_and_comes_back_for_the_browser(bench: Bench) -> None:
    """Its row says where the plain answer lies, and how much it said."""
    lease = to_render(bench)
    plain = PlainResponse.of(lease.row.note)

    assert (plain.words, plain.links) == (3, 1)
    assert (bench.folder.warc / f"{plain.filename}.open").exists()


def shown(lease: Lease, made: Rendered) -> LeaseResult:
    """The end of a render that was read."""
    seen: dict[str, Any] = {"is_text": True, "gained": (200, 9), "is_render": True}
    return LeaseResult(lease.row, Reason.RENDERED, lease=lease, rendered=made, **seen)


def test_a_render_is_archived_and_over(bench: Bench) -> None:
    """A record of what the browser made, a line in the log; it is no second page."""
    lease = to_render(bench)
    pages = bench.run.tallies.pages
    bench.session.pages.finish(shown(lease, rendered(lease, bench)))
    bench.commit()

    line = list(read_log(bench.folder.log))[-1]
    assert (line["rendered"], line["reason"]) == (True, "rendered")
    assert line["warc"]
    assert lease.ended
    assert bench.run.tallies.pages == pages


@pytest.mark.parametrize(
    ("blocked", "learned"), [("", 1), ("tracker", 1), ("stranger-budget", 1), ("render-pace", 0), ("stranger-door", 0)]
)
def test_a_page_without_its_files_of_that_moment_is_no_measure(bench: Bench, blocked: str, learned: int) -> None:
    """What other pages of its template gain is not known from it; what is never to be had is another matter."""
    lease = to_render(bench)
    made = rendered(lease, bench)
    made.blocked.update([blocked] if blocked else [])
    bench.session.pages.finish(shown(lease, made))

    gains = bench.frontier.renders.of(lease.row.host).gains.values()
    assert sum(gain.rendered for gain in gains) == learned


@pytest.mark.parametrize(("repeated", "earned"), [("", 1), ("http://other.test/", 0)])
def test_a_rendered_page_that_repeats_another_earns_its_domain_no_hosts(
    bench: Bench, repeated: str, earned: int
) -> None:
    """As for a page that needs no browser."""
    lease = to_render(bench)
    before = bench.frontier.domains.of(lease.row.host).pages
    result = shown(lease, rendered(lease, bench))
    result.marks, result.duplicate = (4711,), Duplicate("near", repeated, 1) if repeated else None
    bench.session.pages.finish(result)

    assert bench.frontier.domains.of(lease.row.host).pages - before == earned


def test_a_browser_that_died_tries_again_and_not_for_ever(bench: Bench) -> None:
    """The page may be the cause."""
    lease = to_render(bench)
    tries = 0
    while True:
        died = LeaseResult.failed(lease, Reason.RENDER_FAILED)
        died.rendered, died.again = rendered(lease, bench, b""), True
        bench.session.pages.finish(died)
        bench.commit()
        tries += 1
        if not bench.frontier.hosts.waiting_urls:
            break
        lease = bench.page_lease()
        if not lease.row.kind.is_render:
            bench.session.pages.finish(page_of(lease, bench.now))
            break

    assert tries == 3
    assert bench.run.tallies.errors == 3


def test_without_a_browser_pages_wait_and_it_is_said_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """They stay queued for a later run."""
    with caplog.at_level(logging.WARNING):
        bench.session.pages.renders.no_browser("none was found")
        bench.session.pages.renders.no_browser("none was found")

    assert [message for message in caplog.messages if "browser" in message] == [
        "Pages that need a browser stay queued for a later run: none was found."
    ]
    assert bench.frontier.renders.closed == "none was found"


def test_a_sub_request_that_got_no_turn(bench: Bench) -> None:
    """It is logged and counted, with the page as what led to it."""
    lease = bench.page_lease()
    bench.session.pages.renders.refused(lease, parse("http://cdn.test/app.js"), Reason.RENDER_PACE)
    bench.commit()

    line = list(read_log(bench.folder.log))[-1]
    assert (line["url"], line["via"], line["reason"]) == ("http://cdn.test/app.js", lease.row.url, "render-pace")
    assert bench.stats["refused/render-pace"] == 1
