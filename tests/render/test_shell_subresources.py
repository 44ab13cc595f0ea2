"""What a page in the browser asks for: refused, redirected, shared and bounded, whoever sends it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlerproject.errors import FetchError
from crawlerproject.guard.guard import Refused
from crawlerproject.items import Rendered
from crawlerproject.reasons import Reason
from crawlerproject.render.shared_cache import SharedCache, Subresource
from crawlerproject.render.subresources import ShellSubrequests, SubrequestBounds, as_subresource
from crawlerproject.render.visit import Blocked
from crawlerproject.rules.rendering.browser_limits import Reuse

SCRIPT = "http://a.test/app.js"


class Web:
    """An engine's downloads, by address."""

    def __init__(self, **_: Any) -> None:
        self.answers: dict[str, Response | Exception] = {}
        self.asked: list[Request] = []

    async def download_async(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers[request.url]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def redirect(self, url: str, target: str, status: int = 302) -> None:
        """One address leads to another."""
        self.answers[url] = Response(url, status=status, headers={"Location": target})

    def page(self, url: str, body: bytes = b"code", **headers: str) -> None:
        """An address has this."""
        self.answers[url] = Response(url, body=body, headers=headers)


class Bench:
    """The sub-requests of one page, and what they met."""

    def __init__(self, max_asked: int = 50) -> None:
        self.web = Web()
        crawler: Any = SimpleNamespace(engine=self.web)
        self.subrequests = ShellSubrequests(crawler, "a.test", SharedCache(1_000_000), SubrequestBounds(max_asked, 0.0))
        self.rendered = Rendered("http://a.test/")

    async def get(self, url: str = SCRIPT, kind: str = "script", method: str = "GET", **headers: str) -> Subresource:
        """One answer."""
        return await self.subrequests.get(url, kind, method, headers, self.rendered)

    async def blocked(self, url: str = SCRIPT, kind: str = "script", method: str = "GET") -> str:
        """The word with which a sub-request is blocked."""
        with pytest.raises(Blocked) as why:
            await self.get(url, kind, method)
        return str(why.value)


def test_a_script_is_fetched_through_the_whole_chain() -> None:
    """Whatever its extension, and only once."""

    async def main() -> None:
        bench = Bench()
        bench.web.page(SCRIPT)
        assert (await bench.get()).body == (await bench.get()).body == b"code"
        assert [request.url for request in bench.web.asked] == [SCRIPT]
        request = bench.web.asked[0]
        assert (request.meta["seed"], request.dont_filter, request.headers["Accept"]) == (True, True, b"*/*")
        assert (bench.rendered.asked, bench.rendered.cached) == (1, 1)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "kind", "method"),
    [
        ("http://a.test/a.png", "image", "GET"),
        (SCRIPT, "script", "POST"),
        ("http://www.google-analytics.com/a.js", "script", "GET"),
        ("data:text/plain,x", "fetch", "GET"),
    ],
)
def test_what_a_page_does_not_need_is_not_asked_for(url: str, kind: str, method: str) -> None:
    """Pictures, trackers, forms, what is no URL of the web."""

    async def main() -> None:
        bench = Bench()
        assert await bench.blocked(url, kind, method)
        assert bench.web.asked == []

    asyncio.run(main())


def test_redirects_are_followed_three_times() -> None:
    """Each target is judged like the first address."""

    async def main() -> None:
        bench = Bench()
        for number in range(5):
            bench.web.redirect(f"http://a.test/{number}", f"/{number + 1}")
        bench.web.page("http://a.test/5")
        assert (await bench.get("http://a.test/2")).body == b"code"
        assert await bench.blocked("http://a.test/1") == "redirects"
        bench.web.redirect("http://a.test/away", "http://www.google-analytics.com/a.js")
        assert await bench.blocked("http://a.test/away")
        bench.web.redirect("http://a.test/odd", "mailto:x@a.test")
        assert await bench.blocked("http://a.test/odd") == "redirects"

    asyncio.run(main())


def test_a_page_asks_for_so_many() -> None:
    """Whatever redirects add; a refusal was no request."""

    async def main() -> None:
        bench = Bench(max_asked=2)
        for number in range(4):
            bench.web.page(f"http://a.test/{number}.js")
        bench.web.answers["http://a.test/no.js"] = Refused(Reason.ROBOTS)
        assert await bench.blocked("http://a.test/no.js") == "robots"
        assert bench.rendered.asked == 0
        await bench.get("http://a.test/0.js")
        bench.web.answers["http://a.test/broken.js"] = FetchError(Reason.DISCONNECTED)
        assert await bench.blocked("http://a.test/broken.js") == "disconnected"
        assert bench.rendered.asked == 2
        assert await bench.blocked("http://a.test/1.js")
        assert len(bench.web.asked) == 3

    asyncio.run(main())


def test_the_limit_holds_for_redirects_too() -> None:
    """Each hop is a request."""

    async def main() -> None:
        bench = Bench(max_asked=1)
        bench.web.redirect(SCRIPT, "/2.js")
        bench.web.page("http://a.test/2.js")
        assert await bench.blocked()
        assert len(bench.web.asked) == 1

    asyncio.run(main())


def test_the_browser_gets_headers_that_still_hold() -> None:
    """Framing and cookies stay behind; several of one name become one."""
    response = Response(
        SCRIPT,
        headers={
            "Content-Type": "text/javascript",
            "Content-Encoding": "br",
            "Set-Cookie": "a=b",
            "Vary": ["Origin", "Accept"],
        },
        body=b"code",
    )

    assert as_subresource(response) == Subresource(
        200,
        {"content-type": "text/javascript", "vary": "Origin, Accept"},
        b"code",
        Reuse(3600.0, by_origin=True, own_site=False),
    )


def test_a_module_is_asked_for_with_its_pages_origin() -> None:
    """As in a crawl; a host that answers each origin by itself would refuse the script otherwise."""

    async def main() -> None:
        bench = Bench()
        bench.web.page(SCRIPT)
        await bench.get(origin="http://a.test", referer="http://a.test/", cookie="a=b")
        sent = bench.web.asked[0].headers
        assert (sent["Origin"], sent.get("Referer"), sent.get("Cookie")) == (b"http://a.test", None, None)

    asyncio.run(main())


def test_what_a_redirect_depends_on_its_answer_does_too() -> None:
    """A host may send one origin to another file: what came of it is not for all."""

    async def main() -> None:
        bench = Bench()
        bench.web.answers[SCRIPT] = Response(SCRIPT, status=302, headers={"Location": "/2.js"})
        target, anyone = "http://a.test/2.js", {"Access-Control-Allow-Origin": "*"}
        bench.web.answers[target] = Response(target, body=b"code", headers=anyone)
        assert (await bench.get(origin="http://a.test")).reuse == Reuse(86_400.0, by_origin=True, own_site=False)

    asyncio.run(main())


def test_an_answer_that_was_cut_off_serves_no_other_page() -> None:
    """Half a script is none."""
    assert as_subresource(Response(SCRIPT, body=b"code"), "script").reuse is not None
    assert as_subresource(Response(SCRIPT, body=b"co", flags=["truncated-disconnect"]), "script").reuse is None
