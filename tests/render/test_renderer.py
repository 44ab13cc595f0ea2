"""One page through the browser: where its document comes from, and where the result goes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from crawlerproject.crawl.intake import Intake
from crawlerproject.crawl.running_crawl import Crawl
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import Rendered, RenderFailed
from crawlerproject.reasons import Reason
from crawlerproject.render import renderer as renderers
from crawlerproject.render.browser import BrowserMissing
from crawlerproject.render.renderer import Renderer
from crawlerproject.render.request import rendered as rendered_request
from crawlerproject.render.subresources import CrawlSubrequests
from crawlerproject.render.visit import PageVisit
from crawlerproject.request_meta import leased
from crawlerproject.runtime.services import services_of
from crawlerproject.spiders.web import WebSpider
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.crawl.sessions import HOST, Bench, Stats, page_of, settings_of
from tests.exchanges import under_lease


class Browser:
    """Shows every page as it is, with a word more; ``error`` is what it raises instead."""

    def __init__(self) -> None:
        self.visits: list[PageVisit] = []
        self.error: Exception | None = None
        self.closed = False

    async def show(self, visit: PageVisit, host: str) -> None:
        self.visits.append(visit)
        if self.error is not None:
            raise self.error
        visit.rendered.html = visit.document.body + b"<p>shown"
        visit.rendered.asked = 2
        visit.rendered.blocked[str(Reason.RENDER_PACE)] = 1

    async def close(self) -> None:
        self.closed = True


class Crawling(Bench):
    """A crawl with a renderer, and a page that was fetched and now meets the browser."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, RENDER="auto")
        self.frontier.renders.closed = ""
        self.browser = Browser()
        monkeypatch.setattr(Renderer, "_made", lambda renderer: self.browser)
        crawler = Crawler(WebSpider, settings_of(RENDER="auto", CRAWL_DIR=str(self.folder)))
        crawler.stats = cast("Any", Stats())
        self.counts = cast("Stats", crawler.stats)
        services = services_of(crawler)
        services.provide(self.session, self.run, self.frontier.renders, Intake(self.session, self.run, lambda: None))
        services[Crawl] = SimpleNamespace(folder=self.folder)
        self.renderer = Renderer(crawler)

    def page(self, body: bytes = b"<div id=root></div>") -> Lease:
        """A page's lease for the browser; its plain answer is archived."""
        self.add(f"{HOST}/app")
        self.session.pages.finish(page_of(self.page_lease(), self.now, body=body, shell=(3, 1)))
        self.commit()
        while not (lease := self.page_lease()).row.kind.is_render:
            self.session.pages.finish(page_of(lease, self.now))
        return lease

    def render(self, request: Request) -> Response:
        """The page as the browser shows it."""
        return asyncio.run(self._render(request))

    async def _render(self, request: Request) -> Response:
        return await self.renderer.render(request)


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crawling:
    """With a browser that needs no process."""
    return Crawling(tmp_path, monkeypatch)


def test_the_document_comes_from_the_archive(crawl: Crawling) -> None:
    """It is not fetched twice; the result goes with the lease's request."""
    lease = crawl.page()
    request = under_lease(Request(lease.row.url), lease)
    response = crawl.render(request)

    assert response.body == b"<div id=root></div><p>shown"
    assert response.flags == ["rendered"]
    exchange = leased(request)
    assert exchange is not None
    assert exchange.rendered is not None
    assert exchange.rendered.plain_id.startswith("<urn:uuid:")
    assert "rendered" not in request.meta
    visit = crawl.browser.visits[0]
    assert "content-length" not in visit.document.headers
    assert isinstance(visit.subrequests, CrawlSubrequests)


def test_a_worker_that_had_the_host_before_has_the_answer(crawl: Crawling) -> None:
    """The archive never moves: it lies in that worker's folder, open or closed."""
    lease = crawl.page()
    for folder in (crawl.folder, other := CrawlDir(crawl.folder / "worker-2")):
        folder.mkdir(exist_ok=True)
        folder.run.write_text("{}")
    other.worker.write_text("{}")
    crawl.folder.warc.rename(other.warc)

    response = crawl.render(under_lease(Request(lease.row.url), lease))

    assert response.body == b"<div id=root></div><p>shown"


def test_what_a_render_took_is_counted(crawl: Crawling) -> None:
    """Also of a page that failed."""
    crawl.browser.error = RenderFailed(Reason.RENDER_TIMEOUT, "late")
    lease = crawl.page()
    with pytest.raises(RenderFailed):
        crawl.render(under_lease(Request(lease.row.url), lease))
    crawl.browser.error = None
    crawl.render(under_lease(Request(lease.row.url), lease))

    assert crawl.counts["render/pages"] == 2
    assert (crawl.counts["render/requests"], crawl.counts["render/short_of_turns"]) == (2, 1)


def test_a_capture_that_is_gone_fails_the_render(crawl: Crawling) -> None:
    """The page keeps its plain answer, wherever that is."""
    lease = crawl.page()
    for path in crawl.folder.warc.iterdir():
        path.unlink()

    with pytest.raises(RenderFailed) as failed:
        crawl.render(under_lease(Request(lease.row.url), lease))
    assert failed.value.reason is Reason.RENDER_FAILED
    assert "is not at" in failed.value.detail or "any more" in failed.value.detail
    assert crawl.browser.visits == []


def test_without_a_browser_pages_stay_queued(crawl: Crawling, caplog: pytest.LogCaptureFixture) -> None:
    """The crawl says so once; the page is rendered another time."""
    crawl.browser.error = BrowserMissing("no Chromium was found on this machine")
    lease = crawl.page()
    for _ in range(2):
        with pytest.raises(RenderFailed) as failed:
            crawl.render(under_lease(Request(lease.row.url), lease))
        assert failed.value.again

    assert crawl.frontier.renders.closed == "no Chromium was found on this machine"
    assert caplog.text.count("Pages that need a browser stay queued") == 1


class Engine:
    """Scrapy's, outside a crawl."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    async def download_async(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answer


def outside(crawl: Crawling, answer: Response) -> Engine:
    """The renderer's crawler has no crawl, and an engine."""
    engine = Engine(answer)
    crawl.renderer._crawler.engine = cast("Any", engine)
    return engine


def test_outside_a_crawl_the_document_is_fetched_first(crawl: Crawling) -> None:
    """Through the whole chain; the result is in the response's meta."""
    engine = outside(crawl, HtmlResponse(f"{HOST}/app", body=b"<p>plain", headers={"Content-Type": "text/html"}))
    request = rendered_request(f"{HOST}/app")
    response = crawl.render(request)

    assert response.body == b"<p>plain<p>shown"
    assert isinstance(request.meta["rendered"], Rendered)
    assert (engine.asked[0].url, engine.asked[0].meta["seed"]) == (f"{HOST}/app", True)


def test_an_error_is_not_rendered(crawl: Crawling) -> None:
    """It comes back as it is."""
    outside(crawl, Response(f"{HOST}/app", status=404, body=b"gone"))

    assert crawl.render(rendered_request(f"{HOST}/app")).status == 404
    assert crawl.browser.visits == []


def test_closing_ends_the_browser(crawl: Crawling) -> None:
    """If there was one."""
    asyncio.run(crawl.renderer.close())
    assert not crawl.browser.closed
    lease = crawl.page()
    crawl.render(under_lease(Request(lease.row.url), lease))
    asyncio.run(crawl.renderer.close())
    assert crawl.browser.closed


def test_a_machine_without_chromium_has_no_browser(crawl: Crawling, monkeypatch: pytest.MonkeyPatch) -> None:
    """RENDER_BROWSER names none that is there."""
    monkeypatch.undo()
    monkeypatch.setattr(renderers, "find_chromium", lambda path: None)

    with pytest.raises(BrowserMissing):
        crawl.renderer._made()
