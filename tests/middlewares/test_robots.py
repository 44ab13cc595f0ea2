"""robots.txt for requests that the frontier has not judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlerproject.fetch.exchange import exchange_of
from crawlerproject.middlewares.refusal import Refused
from crawlerproject.middlewares.robots import RobotsMiddleware
from crawlerproject.reasons import Reason
from tests.exchanges import under_lease

Answer = Response | Exception


class Web:
    """Answers robots.txt requests from a table and remembers them."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def download(self, request: Request) -> Response:
        """What the engine would do."""
        self.asked.append(request.url)
        await asyncio.sleep(0)
        answer = self.answers[request.url]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def robots(status: int, body: bytes = b"", location: str = "", url: str = "http://a.test/robots.txt") -> Response:
    """A robots.txt answer."""
    return Response(url, status=status, body=body, headers={"Location": location} if location else None)


def guard(answers: dict[str, Answer], clock: Callable[[], float] | None = None) -> tuple[RobotsMiddleware, Web]:
    """The middleware over a small web."""
    web = Web(answers)
    return RobotsMiddleware(
        "foobot", web.download, None, ttl_seconds=100, retry_seconds=10, clock=clock or Clock()
    ), web


def judge(middleware: RobotsMiddleware, *urls: str, meta: dict[str, Any] | None = None) -> list[Reason | None]:
    """Why each of the addresses, asked for at once, is refused; None: it is not."""

    async def one(url: str) -> Reason | None:
        try:
            pending = middleware.process_request(Request(url, meta=meta))
            if isawaitable(pending):
                await pending
        except Refused as refusal:
            return refusal.reason
        return None

    async def together() -> list[Reason | None]:
        return list(await asyncio.gather(*map(one, urls)))

    return asyncio.run(together())


RULES = b"User-agent: foobot\nCrawl-delay: 7\nDisallow: /no\n"


def test_rules_are_obeyed_and_fetched_once() -> None:
    """However many pages wait for them at once."""
    middleware, web = guard({"http://a.test/robots.txt": robots(200, RULES)})
    assert judge(middleware, "http://a.test/yes", "http://a.test/no", "http://a.test/x") == [None, Reason.ROBOTS, None]
    assert web.asked == ["http://a.test/robots.txt"]


def test_each_origin_has_its_own() -> None:
    """RFC 9309 2.3: scheme, host and port."""
    middleware, web = guard(
        {
            "http://a.test/robots.txt": robots(200, RULES),
            "https://a.test/robots.txt": robots(404),
            "http://a.test:81/robots.txt": robots(404),
        }
    )
    urls = ("http://a.test/no", "https://a.test/no", "http://a.test:81/no")
    assert judge(middleware, *urls) == [Reason.ROBOTS, None, None]
    assert len(web.asked) == 3


@pytest.mark.parametrize("answer", [robots(500, RULES), robots(503), robots(429), OSError("no route")])
def test_unreachable_means_no(answer: Answer) -> None:
    """RFC 9309 2.3.1.4: a server error or none at all disallows everything."""
    middleware, _ = guard({"http://a.test/robots.txt": answer})
    assert judge(middleware, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_unavailable_means_yes(status: int) -> None:
    """RFC 9309 2.3.1.3: client errors mean no rules, whatever their body says."""
    middleware, _ = guard({"http://a.test/robots.txt": robots(status, RULES)})
    assert judge(middleware, "http://a.test/no") == [None]


def test_rules_expire_and_so_does_unreachable() -> None:
    """Rules after ROBOTS_TTL_SECONDS, a failure sooner."""
    clock = Clock()
    middleware, web = guard({"http://a.test/robots.txt": robots(200, RULES)}, clock)
    for at, asked in ((0.0, 1), (99.0, 1), (100.0, 2)):
        clock.now = at
        judge(middleware, "http://a.test/yes")
        assert len(web.asked) == asked
    web.answers["http://a.test/robots.txt"] = robots(500)
    clock.now = 200
    assert judge(middleware, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
    web.answers["http://a.test/robots.txt"] = robots(404)
    clock.now = 209
    assert judge(middleware, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
    clock.now = 210
    assert judge(middleware, "http://a.test/yes") == [None]


def test_redirects_are_followed_also_to_other_hosts() -> None:
    """RFC 9309 2.3.1.2; the rules count for the first origin."""
    middleware, web = guard(
        {
            "http://a.test/robots.txt": robots(301, location="https://b.test/r"),
            "https://b.test/robots.txt": robots(404),
            "https://b.test/r": robots(200, RULES),
        }
    )
    assert judge(middleware, "http://a.test/no") == [Reason.ROBOTS]
    assert web.asked == ["http://a.test/robots.txt", "https://b.test/robots.txt", "https://b.test/r"]


def test_a_redirect_is_no_leave_to_ask_what_another_host_forbids() -> None:
    """Its robots.txt judges; what it forbids is not asked for, and doubt means no."""
    middleware, web = guard(
        {
            "http://a.test/robots.txt": robots(302, location="http://b.test/no/delete?id=7"),
            "http://b.test/robots.txt": robots(200, RULES),
        }
    )
    assert judge(middleware, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
    assert web.asked == ["http://a.test/robots.txt", "http://b.test/robots.txt"]


def test_two_hosts_that_send_us_to_each_other_end() -> None:
    """Neither waits for the other for ever."""
    middleware, web = guard(
        {
            "http://a.test/robots.txt": robots(302, location="http://b.test/rules"),
            "http://b.test/robots.txt": robots(302, location="http://a.test/rules"),
        }
    )
    assert judge(middleware, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
    assert web.asked == ["http://a.test/robots.txt", "http://b.test/robots.txt"]


def test_endless_redirects_end_after_five() -> None:
    """RFC 9309 2.3.1.2: then it counts as unavailable."""
    middleware, web = guard({"http://a.test/robots.txt": robots(302, location="/robots.txt")})
    assert judge(middleware, "http://a.test/no") == [None]
    assert len(web.asked) == 6


def test_judged_requests_and_robots_txt_pass_without_a_coroutine() -> None:
    """Leased requests cost next to nothing; robots.txt itself asks for none."""
    middleware, web = guard({})
    assert middleware.process_request(under_lease(Request("http://a.test/no"), object())) is None
    assert middleware.process_request(Request("data:text/plain,x")) is None
    assert judge(middleware, "http://a.test/robots.txt") == [None]
    assert web.asked == []


def test_the_floor_reaches_the_pace() -> None:
    """Crawl-delay travels to the pace middleware in the request's exchange."""
    middleware, _ = guard({"http://a.test/robots.txt": robots(200, RULES)})
    request = Request("http://a.test/yes")

    async def run() -> None:
        pending = middleware.process_request(request)
        assert pending is not None
        await pending

    asyncio.run(run())
    assert exchange_of(request).floor_seconds == 7


@pytest.mark.parametrize("flag", ["truncated-time", "truncated-disconnect", "encoding-damaged"])
def test_one_that_did_not_come_whole_means_no(flag: str) -> None:
    """Half a robots.txt may lack the line that forbids: the page waits as for one that cannot be reached."""
    cut = Response("http://a.test/robots.txt", body=b"User-agent: *\n", flags=[flag])
    middleware, _ = guard({"http://a.test/robots.txt": cut})
    assert judge(middleware, "http://a.test/") == [Reason.ROBOTS_UNREACHABLE]


def test_a_large_one_is_read_in_a_thread() -> None:
    """The verdicts are the same."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: /no%d\n" % number for number in range(20_000))
    middleware, _ = guard({"http://a.test/robots.txt": robots(200, body)})
    assert judge(middleware, "http://a.test/no19999", "http://a.test/yes") == [Reason.ROBOTS, None]
