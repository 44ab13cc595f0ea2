"""Files of rendered pages through a proxy: their hosts' and addresses' clocks hold as without it."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import Asked, answer, arena
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.profiles.apps import shell

SHARED = "127.68.0.9"
IP_SECONDS = 0.2
SEEN_SECONDS = 0.03


def test_sub_requests_through_a_proxy_keep_the_pace_of_their_address(tmp_path: Path) -> None:
    """RENDER_PROXIES sees them one after the other per address; log and audit know the site's own address."""
    with arena(tmp_path) as web:

        def app(asked: Asked) -> bytes | None:
            path = urlsplit(asked.path).path  # a proxy is asked for a whole URL
            if path == "/":
                urls = [f"http://{host}:{web.port}/{n}.json" for n in range(3) for host in ("app.test", "cdn.test")]
                code = f"for (const url of {urls!r}) fetch(url, {{mode: 'no-cors'}}).catch(() => 0)"
                return answer(shell(f"<script>{code}</script>"))
            return answer("{}", mime="application/json") if path.endswith(".json") else None

        web.site("cdn.test", app, SHARED)
        settings = {
            "RENDER": "auto",
            "RENDER_PROXIES": f'["http://127.68.0.1:{web.port}"]',
            "PACE_IP_SECONDS": str(IP_SECONDS),
        }
        crawl = web.crawl(web.site("app.test", app, SHARED), settings=settings)

        proxied = sorted(visit for visit in web.visits if visit.ip == "127.68.0.1")
        lines = [row for row in read_log(crawl.folder / "log") if row["hop"] == "E"]
        audit = [sys.executable, "-m", "scrapy", "audit", str(crawl.folder)]
        judged = zygote.run(audit)
        assert len(proxied) == 6
        least, gap = IP_SECONDS - SEEN_SECONDS, min(b.start - a.end for a, b in pairwise(proxied))
        pays("files of a page through a proxy", "their address", gap, "s between requests", at_least=least)
        assert {(row["ip"], row["status"]) for row in lines} == {(SHARED, 200)}
        assert "0 violations" in judged.stdout
