"""Scripts and data files are fetched once, and serve those pages alone whose own request would get the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.render.shared_cache import CacheQuery, SharedCache, Subresource
from crawlerproject.render.visit import Blocked
from crawlerproject.rules.rendering.browser_limits import Reuse, reuse

ANYONE = Reuse(1e9, by_origin=False, own_site=False)
SAME_ORIGIN = Reuse(1e9, by_origin=True, own_site=False)


def wanted(url: str = "a", origin: str | None = None, site: str = "site.test") -> CacheQuery:
    """What a page asks for."""
    return CacheQuery(url, origin, site)


async def gathered(cache: SharedCache, wishes: list[CacheQuery], reuse: Reuse | None) -> tuple[list[bool], int]:
    """All at once: whether each was served by the cache, and how many at most were under way together."""
    under_way = most = 0

    async def fetch() -> Subresource:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return Subresource(200, {}, b"x", reuse)

    found = await asyncio.gather(*(cache.get(wish, fetch) for wish in wishes))
    return [cached for _, cached in found], most


@pytest.mark.parametrize(
    ("reuse", "fetched", "at_once"),
    [(ANYONE, 1, 1), (SAME_ORIGIN, 2, 1), (None, 6, 3)],
)
def test_those_who_ask_at_once_wait_for_an_answer_that_serves_them(
    reuse: Reuse | None, fetched: int, at_once: int
) -> None:
    """One fetch for all, or for all of an origin; for what serves no other page two waits at most."""
    wishes = [wanted(origin=f"http://{name}.test", site=f"{name}.test") for name in "aabbaa"]
    cached, most = asyncio.run(gathered(SharedCache(100_000), wishes, reuse))

    assert cached.count(False) == fetched
    assert most == at_once


def test_a_refusal_is_the_askers_own() -> None:
    """What one page may not fetch the next one tries for itself: one of those that waited, for all of them."""

    async def main() -> None:
        cache, fetched = SharedCache(100_000), 0

        async def refused() -> Subresource:
            await asyncio.sleep(0.001)
            raise Blocked("too-many")

        async def fine() -> Subresource:
            nonlocal fetched
            fetched += 1
            await asyncio.sleep(0.001)
            return Subresource(200, {}, b"x", ANYONE)

        first = asyncio.ensure_future(cache.get(wanted(), refused))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(cache.get(wanted(site=f"{n}.test"), fine)) for n in range(5)]
        with pytest.raises(Blocked):
            await first
        assert sorted(cached for _, cached in await asyncio.gather(*waiting)) == [False, *4 * [True]]
        assert fetched == 1

    asyncio.run(main())


@pytest.mark.parametrize("status", [404, 503])
def test_after_one_sites_failure_one_of_the_others_asks_for_all(status: int) -> None:
    """Pages of three sites waited for it: two requests reach the host."""

    async def main() -> None:
        cache, answers = SharedCache(100_000), [status, 200, 200, 200]

        async def fetch() -> Subresource:
            code = answers.pop(0)
            await asyncio.sleep(0.001)
            return Subresource(code, {}, b"x", reuse(code, {"access-control-allow-origin": "*"}, "script"))

        found = await asyncio.gather(*(cache.get(wanted(site=f"{name}.test"), fetch) for name in "abcd"))
        assert [answer.status for answer, _ in found] == [status, 200, 200, 200]
        assert [cached for _, cached in found] == [False, False, True, True]

    asyncio.run(main())


def test_a_page_that_is_gone_leaves_the_fetch_to_another() -> None:
    """Its request is cancelled; a page that waited for it asks."""

    async def main() -> None:
        cache = SharedCache(100_000)

        async def forever() -> Subresource:
            await asyncio.sleep(1e6)
            raise AssertionError

        first = asyncio.ensure_future(cache.get(wanted(), forever))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(cache.get(wanted(), lambda: _now(Subresource(200, {}, b"x", ANYONE))))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second)[0].body == b"x"

    asyncio.run(main())


def test_it_is_bounded_by_bytes() -> None:
    """The longest unused goes, whatever it consists of; what is larger than all of it is never kept."""

    async def main() -> None:
        cache = SharedCache(100_000)

        async def get(url: str, size: int, *, in_head: bool = False) -> bool:
            head = {"x": "x" * size} if in_head else {}
            body = b"" if in_head else b"x" * size
            return (await cache.get(wanted(url), lambda: _now(Subresource(200, head, body, ANYONE))))[1]

        for url, size in (("a", 40_000), ("b", 40_000), ("a", 40_000), ("c", 40_000), ("huge", 101_000)):
            await get(url, size)
        assert [await get(url, 40_000) for url in ("a", "c", "b", "huge")] == [True, True, False, False]
        await get("head", 90_000, in_head=True)
        assert not await get("a", 40_000)
        for number in range(200):
            await get(f"empty{number}", 0)
        assert not await get("empty0", 0)
        assert await get("empty199", 0)

    asyncio.run(main())


def test_an_answer_serves_for_its_time() -> None:
    """A later request gets a new one, which counts once."""

    async def main() -> None:
        now = [0.0]
        cache = SharedCache(5_000, lambda: now[0])
        for_a_minute = Subresource(404, {}, b"x" * 2_000, Reuse(60.0, by_origin=True, own_site=True))
        seen = []
        for now[0] in (0.0, 59.0, 60.0, 119.0, 120.0, 179.0):
            seen.append((await cache.get(wanted(), lambda: _now(for_a_minute)))[1])
        assert seen == [False, True, False, True, False, True]
        assert not (await cache.get(wanted("b"), lambda: _now(Subresource(200, {}, b"y" * 500, ANYONE))))[1]
        assert (await cache.get(wanted(), lambda: _now(for_a_minute)))[1]  # both have their place

    asyncio.run(main())


# How servers of scripts answer an origin.
Answer = tuple[int, dict[str, str], str]
SERVERS: dict[str, Callable[[str | None], Answer]] = {
    "open": lambda origin: (200, {"access-control-allow-origin": "*"}, "code"),
    "varies": lambda origin: (200, {"access-control-allow-origin": origin or "null", "vary": "Origin"}, origin or ""),
    "echoes": lambda origin: (200, {"access-control-allow-origin": origin} if origin else {}, "code"),
    "silent": lambda origin: (200, {}, "code"),
    "guards": lambda origin: (404, {}, "") if origin == "http://a.test" else (200, {}, "code"),
    "hides": lambda origin: (404, {}, "") if origin == "http://a.test" else (200, {"vary": "origin"}, origin or ""),
}
ASKED = st.tuples(
    st.sampled_from(sorted(SERVERS)),
    st.sampled_from([None, "http://a.test", "http://b.test", "http://c.test"]),
    st.sampled_from(["a.test", "b.test", "c.test"]),
)


@given(st.lists(ASKED, max_size=40))
def test_a_page_gets_what_its_own_request_would_get(asked: list[tuple[str, str | None, str]]) -> None:
    """Whoever asked before it."""

    async def main() -> None:
        cache = SharedCache(1_000_000, lambda: 0.0)
        for server, origin, site in asked:
            status, headers, body = SERVERS[server](origin)
            answer = Subresource(status, headers, body.encode(), reuse(status, headers, "script"))
            served, _ = await cache.get(wanted(server, origin, site), partial(_now, answer))
            assert served == answer

    asyncio.run(main())


@given(st.lists(st.tuples(st.sampled_from(["a.test", "b.test"]), st.booleans(), st.integers(0, 400)), max_size=30))
def test_a_failure_is_the_sites_own_for_minutes(asked: list[tuple[str, bool, int]]) -> None:
    """Of a server that fails now and then: a page never gets a failure that another site met, nor an old one."""

    async def main() -> None:
        now = 0.0
        cache = SharedCache(1_000_000, lambda: now)
        failures: dict[str, float] = {}
        for site, fails, later in asked:
            now += later
            status = 404 if fails else 200
            answer = Subresource(status, {}, b"", reuse(status, {"access-control-allow-origin": "*"}, "script"))
            served, cached = await cache.get(wanted(site=site), partial(_now, answer))
            if served.status == 404 and cached:
                assert now - failures[site] < 300
            elif served.status == 404:
                failures[site] = now

    asyncio.run(main())


async def _now(answer: Subresource) -> Subresource:
    return answer
