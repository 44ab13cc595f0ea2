"""Questions to another process: one at a time, bounded, and no crawl waits for an answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crawlerproject.watch.watch_pages import NoAnswer, Questions
from tests.web.waiting import eventually


def test_a_folder_without_a_crawl_is_a_sentence(tmp_path: Path) -> None:
    """What the operator's commands refuse is an answer; the process goes on."""

    async def run() -> None:
        questions = Questions({"CRAWL_DIR": str(tmp_path / "none"), "CRAWLER_NAME": "TestBed"})
        try:
            first = await questions.ask("why", "http://example.org/")
            second = await questions.ask("host", "example.org")
            assert "There is no folder" in first["error"]
            assert "There is no folder" in second["error"]
        finally:
            questions.close()

    asyncio.run(run())


def test_too_many_at_once_are_refused(tmp_path: Path) -> None:
    """Eight wait, the ninth is told so at once; when the crawl ends all of them are."""

    async def run() -> None:
        questions = Questions({"CRAWL_DIR": str(tmp_path)})
        asked = [asyncio.create_task(questions.ask("why", "http://example.org/")) for _ in range(8)]
        await eventually(lambda: questions.waiting == 8)
        with pytest.raises(NoAnswer, match="Too many"):
            await questions.ask("why", "http://example.org/")
        questions.close()
        with pytest.raises(NoAnswer):
            await questions.ask("why", "http://example.org/")
        ended = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 20)
        assert all(isinstance(one, NoAnswer) for one in ended)

    asyncio.run(run())


def test_who_goes_away_leaves_no_half_answer(tmp_path: Path) -> None:
    """The next question has its own answer."""

    async def run() -> None:
        questions = Questions({"CRAWL_DIR": str(tmp_path / "none")})
        try:
            first = asyncio.create_task(questions.ask("why", "http://one.example/"))
            await eventually(lambda: questions.waiting == 1)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert "error" in await questions.ask("why", "http://two.example/")
        finally:
            questions.close()

    asyncio.run(run())


def test_the_process_ends_when_nobody_asks(tmp_path: Path) -> None:
    """Its memory is the crawl's; the next question starts another."""

    async def run() -> None:
        questions = Questions({"CRAWL_DIR": str(tmp_path / "none")}, idle_seconds=0.05)
        try:
            for _ in range(2):
                assert "error" in await questions.ask("why", "http://example.org/")
                await eventually(lambda: not questions.running)
        finally:
            questions.close()

    asyncio.run(run())
