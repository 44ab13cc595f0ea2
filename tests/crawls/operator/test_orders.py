"""What an operator says to a crawl from outside: pauses, resumes, added seeds; judged by the servers' own log."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from tests.commands.crawled import scrapy
from tests.crawls.operator.spoken_to import after, chain, crawling, log_of, moved_on, quick
from tests.hostile.arena import arena, most_late_seconds
from tests.stores.redis_servers import RedisServer
from tests.web.waiting import busyness, wait_until


def test_a_host_is_paused_over_a_kill_and_goes_on_when_it_is_let(tmp_path: Path) -> None:
    """No request after the command; why and status say it; a killed and started crawl keeps to it; then it goes on."""
    with arena(tmp_path) as web:
        folder = tmp_path / "crawl"
        seeds = f"seeds={chain(web, 'one.test', 3000)},{chain(web, 'two.test', 3000)}"
        with crawling(web, "-a", seeds) as process:
            moved_on(web, "one.test")
            said = scrapy("pause", "one.test", "--why", "asked by their webmaster", folder=folder)
            paused = time.time()
            moved_on(web, "two.test", 10)
            status = scrapy("status", folder=folder).stdout
            process.send_signal(signal.SIGKILL)
            process.wait()
        with crawling(web):
            moved_on(web, "two.test", 10)
            why = quick(folder, "why", f"one.test:{web.port}")
            row = json.loads(scrapy("why", web.url("one.test", "/2900"), "--json", folder=folder).stdout)
            assert after(web, "one.test", paused) == []
            resumed = quick(folder, "resume", "one.test")
            moved_on(web, "one.test")

    assert said.returncode == 0, said.stderr
    assert "one.test is paused, since" in said.stdout
    assert "The running crawl took it up after" in said.stdout
    assert "one.test is paused" in status
    assert why["state"] == "paused"
    assert "asked by their webmaster" in why["held"]
    assert row["state"] == "never-seen" or row["reason"] == "paused"
    assert "Paused hosts: one.test" in log_of(web)
    assert resumed["hosts"] == {}
    assert resumed["seconds"] <= most_late_seconds()
    assert "Traceback" not in log_of(web)


def test_a_paused_crawl_asks_nothing_and_takes_in_seeds(tmp_path: Path) -> None:
    """Paused over a start; seeds added while it runs paused wait with the others; resumed, it fetches both and ends."""
    with arena(tmp_path) as web:
        folder = tmp_path / "crawl"
        one, two = chain(web, "one.test", 30), chain(web, "two.test", 3)
        with crawling(web, "-a", f"seeds={one}", "-a", "scope=host") as process:
            moved_on(web, "one.test")
            said = quick(folder, "pause")
            paused = time.time()
            added = scrapy("add", two, "--json", folder=folder)
            refused = scrapy("add", "gopher://example.org/", folder=folder)
            assert after(web, "one.test", paused) == []
            stopped = scrapy("stop", folder=folder)
            assert process.wait(timeout=30) == 0
        mode = CrawlDir(folder).control.stat().st_mode & 0o777
        files = {path.stat().st_mode & 0o777 for path in CrawlDir(folder).control.iterdir()}
        with crawling(web) as process:
            wait_until(lambda: read_facts(CrawlDir(folder).status).get("pid") == process.pid, "it runs", seconds=30)
            wait_until(lambda: read_facts(CrawlDir(folder).status)["progress"]["paused"], "it is paused", seconds=30)
            assert after(web, "one.test", paused) == after(web, "two.test", paused) == []
            resumed = scrapy("resume", folder=folder)
            assert process.wait(timeout=60) == 0

        assert said["seconds"] <= most_late_seconds()
        assert "The running crawl took it up after" in stopped.stdout, stopped.stderr
        assert scrapy("stop", folder=folder).returncode == 2  # it does not run
        assert resumed.returncode == 0, resumed.stderr
        assert json.loads(added.stdout) == {"added": 1, "refused": {}, "running": True, "taken_in": True}
        assert refused.returncode == 2
        assert "unsupported-scheme" in refused.stderr
        assert sorted(web.paths("two.test")) == ["/", "/1", "/2"]  # scope=host took the new seed's host in
        assert len(web.paths("one.test")) == len(set(web.paths("one.test"))) == 30
    assert (mode, files) == (0o700, {0o600})
    assert "The crawl is paused, since" in log_of(web)
    assert log_of(web).count("The crawl ends: the operator says so.") == 1  # the next start is not meant
    assert "Traceback" not in log_of(web)


def test_an_added_seed_survives_a_kill_and_is_taken_in_once(tmp_path: Path) -> None:
    """Added while no crawl runs, and killed the moment it is read: the start after has it, asked for once."""
    with arena(tmp_path) as web:
        folder = tmp_path / "crawl"
        one = chain(web, "one.test", 2)
        with crawling(web, "-a", f"seeds={one}") as process:
            assert process.wait(timeout=60) == 0
        many = [chain(web, f"h{number}.test", 1) for number in range(12)]
        (tmp_path / "more.txt").write_text("\n".join(many) + "\n")
        added = scrapy("add", "--file", str(tmp_path / "more.txt"), folder=folder)
        with crawling(web) as process:
            wait_until(lambda: web.of("h0.test") or web.of("h11.test"), "the first is asked", seconds=30)
            process.kill()
        with crawling(web) as process:
            assert process.wait(timeout=60) == 0
        again = scrapy("add", many[0], folder=folder)
        with crawling(web) as process:
            assert process.wait(timeout=60) == 0

        assert added.returncode == again.returncode == 0, added.stderr
        assert "12 seeds added; the crawl does not run, its next start takes it in." in added.stdout
        for number in range(12):
            # One that was on its way when the process was killed is asked again, as any page is.
            assert 1 <= len(web.paths(f"h{number}.test")) <= 2
        assert sum(len(web.paths(f"h{number}.test")) for number in range(12)) <= 12 + 12
        assert list(CrawlDir(folder).control.glob("add-*")) == []
    assert "12 of them new" in log_of(web)
    assert "0 of them new" in log_of(web)
    assert "Traceback" not in log_of(web)


def test_workers_of_one_machine_obey_together(tmp_path: Path) -> None:
    """With Redis between two: given the folder above theirs, each keeps to a pause, and an added seed is fetched once,
    by the one whose host it is.
    """
    with contextlib.ExitStack() as stack:
        redis = RedisServer(tmp_path / "redis").start()
        stack.callback(redis.stop)
        web = stack.enter_context(arena(tmp_path))
        folder = tmp_path / "crawl"
        sites = [chain(web, f"s{number}.test", 3000) for number in range(3)]
        added = [chain(web, f"t{number}.test", 1) for number in range(4)]
        fleet = {
            "STATE_URL": redis.url,
            "FLEET_PARTITIONS": "4",
            "FLEET_LEASE_SECONDS": "6",
            "FETCH_TIMEOUT_SECONDS": "3",
        }
        arguments = ("-a", f"seeds={','.join(sites)}")
        with (
            crawling(web, *arguments, settings=fleet | {"FLEET_WORKER": "w1"}) as one,
            crawling(web, *arguments, settings=fleet | {"FLEET_WORKER": "w2"}) as two,
        ):
            for number in range(3):
                moved_on(web, f"s{number}.test")
            host = quick(folder, "pause", "s0.test")
            paused = time.time()
            said = quick(folder, "add", *added)
            moved_on(web, "s1.test", 5)
            assert after(web, "s0.test", paused) == []
            whole = quick(folder, "pause")
            paused = time.time()
            quick(folder, "resume", "s0.test")
            time.sleep(busyness())  # ten turns of each host: nothing is to come, so there is no event to wait for
            assert [after(web, f"s{number}.test", paused) for number in range(3)] == [[]] * 3
            quick(folder, "resume")
            moved_on(web, "s0.test")
            moved_on(web, "s2.test")
            stopped = quick(folder, "stop")
            assert (one.wait(timeout=60), two.wait(timeout=60)) == (0, 0)
        assert [web.paths(f"t{number}.test") for number in range(4)] == [["/"]] * 4
    assert host["seconds"] <= most_late_seconds()
    assert whole["seconds"] <= most_late_seconds()
    assert (said["added"], said["taken_in"]) == (4, True)
    assert (stopped["running"], stopped["seconds"] is not None) == (True, True)
    assert "Traceback" not in log_of(web)
