"""A worker whose Redis is far away: its event loop does not wait for it."""

from __future__ import annotations

from pathlib import Path

from tests.crawls.fleet.fleets import SETTINGS
from tests.stores.redis_servers import redis_server
from tests.web.judge import read_visits
from tests.web.running import crawl_command, measured, small_settings, synthetic_web

# Before robots.txt of a redirect's host is known, and the like; it was two a page, and four a commit.
_REQUESTS_A_WAIT = 20


def test_its_loop_asks_almost_nothing_of_redis(tmp_path: Path) -> None:
    """A page's way, its comparison and its commit: all is asked in threads, and ahead."""
    waits = tmp_path / "waits"
    with (
        redis_server(tmp_path / "redis") as redis,
        synthetic_web(tmp_path / "web", "--profile", "broad", "--hosts", "12") as web,
    ):
        settings = {**small_settings(web), **SETTINGS, "STATE_URL": redis.url, "FLEET_WORKER": "w1"}
        settings["SCOPE_MAX_URLS_PER_HOST"] = "6"
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        command = [command[0], "-m", "tests.crawls.fleet.asked_on_loop", str(waits), *command[command.index("crawl") :]]
        spent = measured(command, tmp_path / "log")
        assert spent.status == 0, (tmp_path / "log").read_text()[-3000:]
        requests = len(read_visits(web.folder / "server.jsonl"))

    asked = waits.read_text().splitlines()
    assert requests > 60
    assert 0 < len(asked) < requests / _REQUESTS_A_WAIT, "\n".join(asked)
