"""A crawl, or a host of it, that has had as much as its operator wants: it ends in good order and can go on."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.rocks.rocks_store import FrontierView
from tests.commands.crawled import ask
from tests.crawls.operator.spoken_to import asked, chain, crawling, log_of
from tests.crawls.operator.test_resume import run
from tests.hostile.arena import NO_RULES, Arena, Asked, arena, page
from tests.web.judge import read_captures
from tests.web.waiting import wait_until


def ended(folder: Path) -> str:
    """Why the last start ended."""
    return str(read_facts(CrawlDir(folder).status).get("finish_reason"))


def totals(folder: Path) -> tuple[int, int]:
    """Pages and bytes of all starts, as they are committed."""
    with FrontierView(folder / "frontier") as store:
        pages, received, *_ = json.loads(store.fact("totals") or b"[0, 0]")
        return pages, received


def test_pages_are_counted_over_all_starts_and_never_exceeded(tmp_path: Path) -> None:
    """Seven of three hosts, exactly; the same limit again asks nothing; a higher one goes on where it was."""
    with arena(tmp_path) as web:
        hosts = ["one.test", "two.test", "three.test"]
        seeds = "seeds=" + ",".join(chain(web, name) for name in hosts)
        folder = tmp_path / "crawl"

        first = run(web, "web", "-a", seeds, "-a", "max_pages=7")
        after_first = asked(web, *hosts)
        kept = CrawlDir(folder).crawl_file.read_text()
        why = json.loads(run(web, web.url("one.test", "/5"), "--json", command="why").stdout)
        again = run(web, "web")
        after_again = asked(web, *hosts)
        more = run(web, "web", "-a", "max_pages=12")
        run(web, str(tmp_path / "report.html"), command="report")

        assert first.returncode == again.returncode == more.returncode == 0, first.stderr[-2000:] + more.stderr[-2000:]
        assert after_first == after_again == 7
        assert "The crawl has had its max_pages=7" in first.stderr
        assert "max_pages = " in kept
        assert (why["state"], why["reason"]) == ("waiting", "crawl-limit")
        assert "max_pages=7" in why["rule"]
        assert "From now on max_pages is 12 (7 before)" in more.stderr
        assert asked(web, *hosts) == 12
        assert totals(folder)[0] == 12
        assert ended(folder) == "max_pages"
        assert "the crawl has had its max_pages=12" in (tmp_path / "report.html").read_text()
        assert "Traceback" not in first.stderr + again.stderr + more.stderr
        # Nothing was asked twice: what one start left, the next one took up.
        assert all(len(set(web.paths(host))) == len(web.paths(host)) for host in hosts)


def test_a_host_that_has_had_its_share_is_left_with_its_queue(tmp_path: Path) -> None:
    """Of every host three, of one seed's five; why and hosts say so; raised later, the crawl goes on without a word."""
    with arena(tmp_path) as web:
        one, two = chain(web, "one.test", 8), chain(web, "two.test", 8)
        seeds = tmp_path / "seeds.txt"
        seeds.write_text(f"{one}\n{two} max_pages=2  # a small server\n")
        folder = tmp_path / "crawl"

        first = run(web, "web", "-a", f"seeds={seeds}", "-a", "max_pages_per_host=3")
        after_first = asked(web, "one.test"), asked(web, "two.test")
        url = json.loads(run(web, web.url("one.test", "/5"), "--json", command="why").stdout)
        host = json.loads(run(web, f"two.test:{web.port}", "--json", command="why").stdout)
        states = {row["host"]: row["state"] for row in ask(folder, "hosts")}
        more = run(web, "web", "-a", "max_pages_per_host=0")

        assert first.returncode == more.returncode == 0, first.stderr[-2000:]
        assert after_first == (3, 2)
        assert "Hosts that have had as much as they may have: 2" in first.stderr
        assert (url["state"], url["reason"]) == ("waiting", "host-limit")
        assert "max_pages_per_host=3" in url["rule"]
        assert host["state"] == "limited"
        assert "max_pages=2 of its seed" in host["held"]
        assert set(states.values()) == {"limited"}
        assert (asked(web, "one.test"), asked(web, "two.test")) == (8, 2)


def test_bytes_and_time_end_a_crawl(tmp_path: Path) -> None:
    """Bytes by no more than what is on its way; seconds since this start."""
    with arena(tmp_path) as web:
        seeds = f"seeds={chain(web, 'one.test', 400)}"
        folder = tmp_path / "crawl"

        some = run(web, "web", "-a", seeds, "-a", "max_bytes=5kB")
        received = totals(folder)[1]
        soon = run(web, "web", "-a", "max_bytes=0", "-a", "max_time=2s")

    assert some.returncode == soon.returncode == 0, some.stderr[-2000:] + soon.stderr[-2000:]
    assert 5_000 <= received < 8_000
    assert "has had its max_bytes=5000" in some.stderr
    assert "has had its max_time=2" in soon.stderr
    assert ended(folder) == "max_time"


@pytest.mark.parametrize("limit", ["CLOSESPIDER_PAGECOUNT=5", "CLOSESPIDER_TIMEOUT=2"])
def test_scrapys_own_limits_end_in_good_order(tmp_path: Path, limit: str) -> None:
    """What was on its way is committed, the rest is fetched by the next start, nothing twice."""
    name, _, value = limit.partition("=")
    with arena(tmp_path) as web:
        seeds = f"seeds={chain(web, 'one.test', 60)}"

        first = run(web, "web", "-a", seeds, **{name: value})
        before = asked(web, "one.test")
        rest = run(web, "web")

        assert first.returncode == rest.returncode == 0, first.stderr[-2000:]
        assert 1 <= before < 60
        assert sorted(web.paths("one.test")) == sorted(["/", *(f"/{at}" for at in range(1, 60))])
    assert ended(tmp_path / "crawl") == "finished"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-a", "max_pages=many"], "max_pages is 'many'; give for example 1000"),
        (["-a", "max_time=1fortnight"], "max_time is '1fortnight'"),
        (["-a", "max_page=5"], "-a max_page= is no argument of a crawl; max_pages was probably meant"),
        (["-a", "exclude=calendar"], "'calendar' would match no URL"),
        (["-a", "seeds=https://example.org/ sope=path"], "line 1: 'sope=path' is no option of a seed"),
    ],
)
def test_what_would_silently_not_hold_is_refused(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    """One sentence, before anything is asked."""
    with arena(tmp_path) as web:
        seeds = [] if any("seeds=" in one for one in arguments) else ["-a", f"seeds={chain(web, 'one.test')}"]

        refused: subprocess.CompletedProcess[str] = run(web, "web", *seeds, *arguments)

        assert web.visits == []
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert not re.search("Traceback", refused.stderr)


def _were_asked(web: Arena, hosts: list[str], pages: int) -> bool:
    return asked(web, *hosts) >= pages


def _archived(folder: Path) -> list[int]:
    """Of each page's URL how many captures there are."""
    captures = read_captures(CrawlDir(folder).warc)
    return [captures[url].total() for url in captures if not url.endswith("/robots.txt")]


def test_a_kill_exceeds_a_limit_by_no_more_than_was_on_its_way(tmp_path: Path) -> None:
    """Killed twice in the middle: the count that is committed never lags behind what is archived."""
    with arena(tmp_path) as web:
        hosts = [f"h{number}.test" for number in range(4)]
        seeds = "seeds=" + ",".join(chain(web, name, 200) for name in hosts)
        most = 0  # a life asks for what the last commit before it has left
        for goal in (10, 20):
            with crawling(web, "-a", seeds, "-a", "max_pages=40") as process:
                wait_until(partial(_were_asked, web, hosts, goal), f"{goal} pages", seconds=60)
                process.kill()
            most += 40 - totals(tmp_path / "crawl")[0]
        with crawling(web) as process:
            assert process.wait(timeout=60) == 0

        pages = sum(len(set(web.paths(host))) for host in hosts)
        again = asked(web, *hosts) - pages
    assert totals(tmp_path / "crawl")[0] == 40
    assert _archived(tmp_path / "crawl") == [1] * 40
    # What a crash forgot is fetched again, and counted once: by the host's turn, so that another page may come first.
    assert 40 <= pages <= pages + again <= 40 + most
    assert again <= 2 * 4 * 12  # of each kill: at most what four hosts are asked between two commits, and a bit


def test_what_was_on_its_way_at_a_kill_is_all_that_is_asked_beyond_a_limit(tmp_path: Path) -> None:
    """Four pages; three are committed and one is under way at the kill, whose host the operator excludes then."""
    begun: list[str] = []
    held, given_up = threading.Event(), threading.Event()

    async def until(event: threading.Event) -> None:
        while not event.is_set():
            await asyncio.sleep(0.01)

    async def talk(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/robots.txt":
            writer.write(NO_RULES)
            return
        begun.append(asked.host + asked.path)
        if asked.host == "slow.test":
            held.set()
            await until(given_up)
        else:
            await until(held)
            writer.write(page("/1", "/2", "/3", "/4", "/5", text=f"page {asked.path}"))

    def committed() -> bool:
        return bool(read_facts(CrawlDir(tmp_path / "crawl").status).get("committed_totals", {}).get("pages") == 3)

    excluded = tmp_path / "nevercrawl.txt"
    excluded.touch()
    settings = {"NEVERCRAWL_FILE": str(excluded)}
    with arena(tmp_path) as web:
        seeds = ",".join(web.raw_site(name, talk) for name in ("quick.test", "slow.test"))
        with crawling(web, "-a", f"seeds={seeds}", "-a", "max_pages=4", settings=settings) as process:
            wait_until(committed, "three pages are committed", seconds=60)
            process.kill()
        before = list(begun)
        given_up.set()
        excluded.write_text("slow.test\n")
        with crawling(web, settings=settings) as process:
            assert process.wait(timeout=60) == 0, log_of(web)[-2000:]

    assert sorted(before) == ["quick.test/", "quick.test/1", "quick.test/2", "slow.test/"]
    assert begun[len(before) :] == ["quick.test/3"]
    assert totals(tmp_path / "crawl")[0] == 4
    assert _archived(tmp_path / "crawl") == [1] * 4
