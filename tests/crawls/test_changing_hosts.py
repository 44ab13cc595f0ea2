"""In the middle of a crawl a host moves to another address, and another one's certificate expires and is renewed."""

from __future__ import annotations

import sys
from pathlib import Path

from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.test_dead_host import DEADLINE_SECONDS, SETTINGS
from tests.fetch.servers import make_ca, server_tls
from tests.web.chain import chain
from tests.web.running import crawl_command, start
from tests.web.waiting import wait_until

A_QUARTER_OF_AN_HOUR = 0.01  # days: longer than the least that an address is good for
FEW = 3


def test_hosts_that_change_lose_no_page(tmp_path: Path) -> None:
    """Each page leads to the next, so that a lost one would be the last: none is, and each is asked for once."""
    log, later, hosts = tmp_path / "log", tmp_path / "later", tmp_path / "hosts"
    ca = make_ca(tmp_path)
    contexts = [server_tls(tmp_path, ca, "renewed.test", days) for days in (5, -1, 6)]
    with (
        chain(("127.0.0.1", 0), endless=True) as here,
        chain(("127.0.0.2", here.server_port), endless=True) as there,
        chain(("127.0.0.3", 0), endless=True, contexts=contexts[:1]) as renewed,
    ):
        port = here.server_port
        hosts.write_text("127.0.0.1 moves.test\n127.0.0.3 renewed.test\n")
        (tmp_path / "seeds.txt").write_text(f"http://moves.test:{port}/\nhttps://renewed.test:{renewed.server_port}/\n")
        settings = {**SETTINGS, "HOST_MAX_FAILURES": "5", "FETCH_CA_FILE": ca[2]}
        command = crawl_command(tmp_path / "seeds.txt", tmp_path / "crawl", hosts, settings, "host")
        begin = [sys.executable, "-m", "tests.web.later", f"{A_QUARTER_OF_AN_HOUR}@{later}", "crawl", "web"]
        with log.open("wb") as output:
            process = start([*begin, *command[command.index("web") + 1 :]], output)
        try:
            wait_until(lambda: min(len(here.asked), len(renewed.asked)) > FEW, process=process, log=log)
            renewed.contexts[:] = contexts[1:]
            hosts.write_text("127.0.0.2 moves.test\n127.0.0.3 renewed.test\n")
            later.touch()
            wait_until(lambda: len(there.asked) > FEW, process=process, log=log)
            wait_until(lambda: renewed.contexts == contexts[2:], process=process, log=log)
            before = len(renewed.asked)
            wait_until(lambda: len(renewed.asked) > before + FEW, process=process, log=log)
            here.endless = there.endless = renewed.endless = False
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()

    failed = [row["reason"] for row in read_log(tmp_path / "crawl" / "log") if row["status"] is None]
    assert failed == ["tls-certificate"]
    for asked in (here.asked + there.asked, renewed.asked):
        assert asked == ["/robots.txt", "/", *(f"/{number}" for number in range(1, len(asked) - 1))]
    assert "Traceback" not in log.read_text()
