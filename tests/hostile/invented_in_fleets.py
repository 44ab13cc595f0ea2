"""What an innocent site gets of a fleet while another site invents domains, as a share of what it gets alone.

    python -m tests.hostile.invented_in_fleets [process|local|redis ...]

``inventions/test_invented_domains.py`` has the attack, its bounds and the crawl of one process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.arena import SETTINGS, arena, page
from tests.hostile.inventions.test_invented_domains import EVIL, GOOD, PAGES, SITES_ADDRESS, address_of, evil, good
from tests.hostile.name_server import name_server
from tests.hostile.shared_addresses import LEAST_SHARE, crawl_of
from tests.web.waiting import wait_until

_SECONDS = 20.0


def pages_a_second(kind: str, folder: Path, *, attacked: bool) -> tuple[float, int]:
    """(pages of the innocent site a second, invented names that the DNS was asked for), from the attack's last page."""
    with name_server(address_of) as (server, address), arena(folder) as web:
        web.site("*.com", lambda asked: page(text="small") if asked.path == "/" else None, SITES_ADDRESS)
        seeds = [good(web, {}), *([web.site(EVIL, evil)] if attacked else [])]
        settings = {**SETTINGS, "FETCH_DNS_SERVERS": address, "SCOPE_MAX_DEPTH": "100000"}
        with crawl_of(kind, web, seeds, settings) as processes:
            wait_until(lambda: web.of(GOOD) and (len(web.of(EVIL)) >= PAGES or not attacked), "asked", seconds=60)
            began = time.time()
            time.sleep(_SECONDS)
            until = time.time()
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(timeout=60)
        asked = sum(began <= visit.start <= until for visit in web.of(GOOD))
        return asked / _SECONDS, sum(name.startswith("invented") for name in server.asked)


def main() -> int:
    """Measure and print; whether the site got its nine tenths."""
    least = 1.0
    for kind in sys.argv[1:] or ("process", "local", "redis"):
        alone, _ = pages_a_second(kind, Path(tempfile.mkdtemp()), attacked=False)
        beside, names = pages_a_second(kind, Path(tempfile.mkdtemp()), attacked=True)
        least = min(least, beside / alone)
        print(f"{kind:8} {beside:.1f} pages a second, {beside / alone:.1%} of {alone:.1f}; {names} names", flush=True)
    return 0 if least >= LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
