"""Scripts and data files are fetched once."""

import asyncio

import pytest

from crawlerproject.render.shared_cache import Embedded, SharedCache
from crawlerproject.render.visit import Blocked


def test_those_who_ask_at_once_wait_for_one_answer() -> None:
    """One fetch for three pages; one that may not be kept is fetched by each."""
    fetched = []

    async def ask(cache: SharedCache, url: str, *, keep: bool) -> bool:
        async def fetch() -> Embedded:
            fetched.append(url)
            await asyncio.sleep(0)
            return Embedded(200, {}, b"x", keep)

        return (await cache.get(url, fetch))[1]

    async def all_of_them() -> tuple[list[bool], list[bool]]:
        cache = SharedCache(1000)
        shared = await asyncio.gather(*(ask(cache, "a", keep=True) for _ in range(3)))
        private = await asyncio.gather(*(ask(cache, "b", keep=False) for _ in range(3)))
        return shared, private

    shared, private = asyncio.run(all_of_them())

    assert sorted(shared) == [False, True, True]
    assert private == [False, False, False]
    assert fetched == ["a", "b", "b", "b"]


def test_a_refusal_is_the_askers_own() -> None:
    """What one page may not fetch the next one tries for itself."""

    async def refused() -> Embedded:
        raise Blocked("too-many")

    async def fine() -> Embedded:
        return Embedded(200, {}, b"x")

    async def both() -> bool:
        cache = SharedCache(1000)
        with pytest.raises(Blocked):
            await cache.get("a", refused)
        return (await cache.get("a", fine))[1]

    assert asyncio.run(both()) is False


def test_it_is_bounded_by_bytes() -> None:
    """The longest unused goes; what is larger than all of it is never kept."""

    async def fill() -> list[bool]:
        cache = SharedCache(100)

        async def get(url: str, size: int) -> bool:
            async def fetch() -> Embedded:
                return Embedded(200, {}, b"x" * size)

            return (await cache.get(url, fetch))[1]

        for url, size in (("a", 40), ("b", 40), ("a", 40), ("c", 40), ("huge", 101)):
            await get(url, size)
        return [await get(url, 40) for url in ("a", "c", "b", "huge")]

    assert asyncio.run(fill()) == [True, True, False, False]
