"""robots.txt for requests that the frontier has not judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.http import Response

from crawlerproject.guard import robots_guard
from crawlerproject.guard.guard import Refused
from crawlerproject.guard.robots_guard import RobotsGuard
from crawlerproject.reasons import Reason
from crawlerproject.rules.consent.verdict import Source

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


def guard(answers: dict[str, Answer], clock: Callable[[], float] | None = None) -> tuple[RobotsGuard, Web]:
    """The guard over a small web."""
    return RobotsGuard("foobot", None, ttl_seconds=100, retry_seconds=10, clock=clock or Clock()), Web(answers)


def judge(robots: tuple[RobotsGuard, Web], *urls: str) -> list[Reason | None]:
    """Why each of the addresses, asked for at once, is refused; None: it is not."""

    async def one(url: str) -> Reason | None:
        try:
            await robots[0].judge(Request(url), robots[1].download)
        except Refused as refusal:
            return refusal.reason
        return None

    async def together() -> list[Reason | None]:
        return list(await asyncio.gather(*map(one, urls)))

    return asyncio.run(together())


RULES = b"User-agent: foobot\nCrawl-delay: 7\nDisallow: /no\n"


def test_rules_are_obeyed_and_fetched_once() -> None:
    """However many pages wait for them at once."""
    both = guard({"http://a.test/robots.txt": robots(200, RULES)})
    assert judge(both, "http://a.test/yes", "http://a.test/no", "http://a.test/x") == [None, Reason.ROBOTS, None]
    assert both[1].asked == ["http://a.test/robots.txt"]


def test_each_origin_has_its_own() -> None:
    """RFC 9309 2.3: scheme, host and port."""
    both = guard(
        {
            "http://a.test/robots.txt": robots(200, RULES),
            "https://a.test/robots.txt": robots(404),
            "http://a.test:81/robots.txt": robots(404),
        }
    )
    urls = ("http://a.test/no", "https://a.test/no", "http://a.test:81/no")
    assert judge(both, *urls) == [Reason.ROBOTS, None, None]
    assert len(both[1].asked) == 3


@pytest.mark.parametrize("answer", [robots(500, RULES), robots(503), robots(429), OSError("no route")])
def test_unreachable_means_no(answer: Answer) -> None:
    """RFC 9309 2.3.1.4: a server error or none at all disallows everything."""
    both = guard({"http://a.test/robots.txt": answer})
    assert judge(both, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_unavailable_means_yes(status: int) -> None:
    """RFC 9309 2.3.1.3: client errors mean no rules, whatever their body says."""
    both = guard({"http://a.test/robots.txt": robots(status, RULES)})
    assert judge(both, "http://a.test/no") == [None]


def test_rules_expire_and_so_does_unreachable() -> None:
    """Rules after ROBOTS_TTL_SECONDS, a failure sooner."""
    clock = Clock()
    both = guard({"http://a.test/robots.txt": robots(500)}, clock)
    for at, asked in ((0.0, 1), (9.0, 1), (10.0, 2)):
        clock.now = at
        assert judge(both, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
        assert len(both[1].asked) == asked
    both[1].answers["http://a.test/robots.txt"] = robots(200, RULES)
    for at, asked in ((20.0, 3), (119.0, 3), (120.0, 4)):
        clock.now = at
        assert judge(both, "http://a.test/no") == [Reason.ROBOTS]
        assert len(both[1].asked) == asked


def test_an_old_copy_serves_while_robots_txt_is_unreachable() -> None:
    """RFC 9309 2.3.1.4, as in a crawl: for 30 days; it is asked for again each hour."""
    clock = Clock()
    both = guard({"http://a.test/robots.txt": robots(200, RULES)}, clock)
    judge(both, "http://a.test/yes")
    both[1].answers["http://a.test/robots.txt"] = robots(503)
    for at, asked in ((100.0, 2), (3699.0, 2), (3700.0, 3)):
        clock.now = at
        assert judge(both, "http://a.test/yes", "http://a.test/no") == [None, Reason.ROBOTS]
        assert len(both[1].asked) == asked
    clock.now = 31 * 86_400.0
    assert judge(both, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest copies go, and are asked for again: rules that are not known any more allow nothing by themselves."""
    monkeypatch.setattr(robots_guard, "_KEPT_BYTES", 5_000)
    urls = [f"http://h{number}.test/robots.txt" for number in range(10)]
    both = guard({url: robots(200, RULES + b"#" * 1_000, url=url) for url in urls})
    for _ in range(2):
        for url in urls:
            assert judge(both, url.replace("robots.txt", "yes")) == [None]
    assert both[1].asked == urls * 2


def test_redirects_are_followed_also_to_other_hosts() -> None:
    """RFC 9309 2.3.1.2; the rules count for the first origin."""
    both = guard(
        {
            "http://a.test/robots.txt": robots(301, location="https://b.test/r"),
            "https://b.test/robots.txt": robots(404),
            "https://b.test/r": robots(200, RULES),
        }
    )
    assert judge(both, "http://a.test/no") == [Reason.ROBOTS]
    assert both[1].asked == ["http://a.test/robots.txt", "https://b.test/robots.txt", "https://b.test/r"]


def test_a_redirect_is_no_leave_to_ask_what_another_host_forbids() -> None:
    """Its robots.txt judges; what it forbids is not asked for, and doubt means no."""
    both = guard(
        {
            "http://a.test/robots.txt": robots(302, location="http://b.test/no/delete?id=7"),
            "http://b.test/robots.txt": robots(200, RULES),
        }
    )
    assert judge(both, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
    assert both[1].asked == ["http://a.test/robots.txt", "http://b.test/robots.txt"]


def test_two_hosts_that_send_us_to_each_other_end() -> None:
    """Neither waits for the other for ever."""
    both = guard(
        {
            "http://a.test/robots.txt": robots(302, location="http://b.test/rules"),
            "http://b.test/robots.txt": robots(302, location="http://a.test/rules"),
        }
    )
    assert judge(both, "http://a.test/yes") == [Reason.ROBOTS_UNREACHABLE]
    assert both[1].asked == ["http://a.test/robots.txt", "http://b.test/robots.txt"]


def test_endless_redirects_end_after_five() -> None:
    """RFC 9309 2.3.1.2: then it counts as unavailable."""
    both = guard({"http://a.test/robots.txt": robots(302, location="/robots.txt")})
    assert judge(both, "http://a.test/no") == [None]
    assert len(both[1].asked) == 6


def test_robots_txt_itself_needs_none() -> None:
    """Nothing is asked for."""
    both = guard({})
    assert judge(both, "http://a.test/robots.txt") == [None]
    assert both[1].asked == []


def test_the_crawl_delay_is_given_to_the_pace() -> None:
    """In seconds; 0 when robots.txt asks for none."""
    judging, web = guard({"http://a.test/robots.txt": robots(200, RULES), "http://b.test/robots.txt": robots(404)})

    async def floors() -> list[float]:
        return [await judging.judge(Request(f"http://{host}.test/yes"), web.download) for host in "ab"]

    assert asyncio.run(floors()) == [7, 0]


def test_what_is_known_now_asks_for_nothing() -> None:
    """For the shell's ``page.robots``."""
    both = guard({"http://a.test/robots.txt": robots(200, RULES), "http://b.test/robots.txt": robots(500)})
    assert both[0].rules("http://a.test") is None
    judge(both, "http://a.test/", "http://b.test/")
    known = both[0].rules("http://a.test")
    assert known is not None
    assert not known.allowed("http://a.test/no")
    assert both[0].rules("http://b.test") is None


@pytest.mark.parametrize("flag", ["truncated-time", "truncated-disconnect", "encoding-damaged"])
def test_one_that_did_not_come_whole_means_no(flag: str) -> None:
    """Half a robots.txt may lack the line that forbids: the page waits as for one that cannot be reached."""
    cut = Response("http://a.test/robots.txt", body=b"User-agent: *\n", flags=[flag])
    both = guard({"http://a.test/robots.txt": cut})
    assert judge(both, "http://a.test/") == [Reason.ROBOTS_UNREACHABLE]


def test_a_large_one_is_read_in_a_thread() -> None:
    """The verdicts are the same."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: /no%d\n" % number for number in range(20_000))
    both = guard({"http://a.test/robots.txt": robots(200, body)})
    assert judge(both, "http://a.test/no19999", "http://a.test/yes") == [Reason.ROBOTS, None]


def test_documents_beside_it_are_asked_for_where_words_are_obeyed() -> None:
    """Once; by default robots.txt alone is."""
    answers: dict[str, Answer] = {
        "http://a.test/robots.txt": robots(200, b"License: l.xml"),
        "http://a.test/.well-known/tdmrep.json": robots(200, b'[{"location": "/no", "tdm-reservation": 1}]'),
        "http://a.test/l.xml": robots(200, b'<rsl><content url="/paid"><license><payment/></license></content></rsl>'),
    }
    obeying = RobotsGuard(
        "foobot", None, ttl_seconds=100, retry_seconds=10, clock=Clock(), obeyed_for="ai-train", asks=tuple(Source)
    )
    web = Web(answers)
    for _ in range(2):
        found = judge((obeying, web), "http://a.test/yes", "http://a.test/no", "http://a.test/paid")
        assert found == [None, Reason.RESERVED_TDMREP, Reason.PAYMENT_REQUIRED]
    assert web.asked == list(answers)
    both = guard(answers)
    assert judge(both, "http://a.test/no") == [None]
    assert len(both[1].asked) == 1


def test_a_licence_of_another_host_is_asked_for_as_its_rules_let_us() -> None:
    """Once for all who name it; two hosts that have each other's do not wait for each other."""
    said = b'<rsl><content url="/paid"><license><payment/></license></content></rsl>'
    answers: dict[str, Answer] = {
        **{f"http://{host}.test/robots.txt": robots(200, b"License: http://c.test/l.xml") for host in "ab"},
        "http://c.test/robots.txt": robots(200, b"User-agent: *\nDisallow: /no\nLicense: http://a.test/l.xml"),
        "http://d.test/robots.txt": robots(200, b"License: http://c.test/no.xml"),
        "http://a.test/l.xml": robots(200, said),
        "http://c.test/l.xml": robots(200, said),
    }
    asks = (Source.LICENSE,)
    obeying = RobotsGuard(
        "foobot", None, ttl_seconds=100, retry_seconds=10, clock=Clock(), obeyed_for="search", asks=asks
    )
    web = Web(answers)

    found = judge((obeying, web), "http://a.test/", "http://a.test/paid", "http://b.test/paid", "http://d.test/")
    assert found == [None, Reason.PAYMENT_REQUIRED, Reason.PAYMENT_REQUIRED, Reason.RESERVED_LICENSE]
    assert web.asked.count("http://c.test/l.xml") == 1
    assert "http://c.test/no.xml" not in web.asked
