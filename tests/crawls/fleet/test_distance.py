"""A worker whose Redis is far away, and lets it do what deploy/redis/users.acl says: its event loop does not wait."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import SETTINGS
from tests.stores.redis_servers import RedisServer, redis_server
from tests.web.judge import read_visits
from tests.web.running import PROJECT, crawl_command, measured, small_settings, synthetic_web

# Before robots.txt of a redirect's host is known, and the like; it was two a page, and four a commit.
_REQUESTS_A_WAIT = 20


_ACL = PROJECT / "deploy" / "redis" / "users.acl"


def _server(folder: Path) -> AbstractContextManager[RedisServer]:
    """One with the users that we advise."""
    users = folder / "users.acl"
    users.write_text(_ACL.read_text().replace(">OPERATORS-PASSWORD", "nopass").replace("CRAWLERS-PASSWORD", "sesame"))
    return redis_server(folder / "redis", "--aclfile", str(users))


def test_its_loop_asks_almost_nothing_of_redis(tmp_path: Path) -> None:
    """A page's way, its comparison and its commit: all is asked in threads, and ahead."""
    waits = tmp_path / "waits"
    with (
        _server(tmp_path) as redis,
        synthetic_web(tmp_path / "web", "--profile", "broad", "--hosts", "12") as web,
    ):
        state_url = redis.url.replace("://", "://crawler:sesame@")
        settings = {**small_settings(web), **SETTINGS, "STATE_URL": state_url, "FLEET_WORKER": "w1"}
        settings["SCOPE_MAX_URLS_PER_HOST"] = "6"
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        command = [command[0], "-m", "tests.crawls.fleet.asked_on_loop", str(waits), *command[command.index("crawl") :]]
        spent = measured(command, tmp_path / "log")
        assert spent.status == 0, (tmp_path / "log").read_text()[-3000:]
        for arguments in (("status",), ("verify",), ("state", "copy", state_url, str(tmp_path / "copy"))):
            said = scrapy(*arguments, "-s", f"STATE_URL={state_url}", folder=tmp_path / "crawl")
            assert said.returncode == 0, said.stderr
        with redis.client() as client:
            refused = client.execute_command("ACL", "LOG")
        with Redis.from_url(state_url) as client:
            for forbidden in (client.flushall, lambda: client.set("another's", 1)):
                with pytest.raises(NoPermissionError):
                    forbidden()
        requests = len(read_visits(web.folder / "server.jsonl"))

    assert refused == []
    asked = waits.read_text().splitlines()
    assert requests > 60
    assert 0 < len(asked) < requests / _REQUESTS_A_WAIT, "\n".join(asked)
