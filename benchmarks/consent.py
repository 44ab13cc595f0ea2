"""``make bench-consent``: forty sites with words on use in all places, crawled for each purpose in each way.

In one process, as a local fleet and as a fleet in Redis; for each purpose with CONSENT=auto (obeyed for ai-train and
ai-input, else recorded), for archive with ask and obey, for research with record. Judged by the servers' logs against
the table of words in ``tests/web/profiles/consent.py``. Exit status 1 when anything is otherwise.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from crawlerproject.rules.consent.verdict import PURPOSES
from tests.crawls.consents import WAYS, Crawled, complaints, crawl_for
from tests.web.profiles.consent import ELSEWHERE, LICENSE, PAGES, SITES, TDMREP

CRAWLS = [*((purpose, "auto") for purpose in PURPOSES), ("archive", "ask"), ("archive", "obey"), ("research", "record")]


def counts(crawled: Crawled, host: str) -> str:
    """Of one site: pages fetched, kept and exported, and the verdicts of the last."""
    fetched = sum(count for place, count in crawled.asked.items() if place in PAGES and place[0] == host)
    kept = sum(page[0] == host for page in crawled.kept & PAGES)
    verdicts = sorted({said[:1] for page, said in crawled.exported.items() if page in PAGES and page[0] == host})
    return f"{fetched}/{kept}/{sum(page in PAGES and page[0] == host for page in crawled.exported)}{''.join(verdicts)}"


def main() -> int:
    """Print what was found."""
    tables, wrong = dict[str, list[list[str]]](), 0
    with tempfile.TemporaryDirectory() as made:
        for number, (purpose, consent) in enumerate(CRAWLS):
            name = purpose + (f" {consent}" if consent != "auto" else "")
            for way in WAYS:
                folder = Path(made) / f"{number}-{way.split()[0]}"
                folder.mkdir()
                crawled = crawl_for(folder, purpose, consent, way)
                documents = sum(
                    count for place, count in crawled.asked.items() if place[1] in (TDMREP, LICENSE, ELSEWHERE)
                )
                found = complaints(crawled)
                wrong += bool(found)
                tables.setdefault(way, []).append([name, *(counts(crawled, host) for host in SITES)])
                pages = sum(crawled.asked[page] for page in PAGES)
                asked = f"{pages:3} pages and {documents:2} documents asked for"
                print(f"{name:15} {way:12} {asked}: {found or 'as the table says'}", flush=True)
    print(
        "\nPages fetched/kept/exported of three, and the verdicts exported (allowed, reserved, unknown), in one process"
    )
    columns = tables[WAYS[0]]
    print(f"{'robots.txt-header-page-document':32}", *(f"{column[0]:15}" for column in columns))
    for row, host in enumerate(SITES, 1):
        print(f"{host.removesuffix('.test'):32}", *(f"{column[row]:15}" for column in columns))
    same = all(tables[way] == columns for way in WAYS)
    print(f"\nBoth fleets have the same table: {'yes' if same else 'no'}")
    return int(wrong > 0 or not same)


if __name__ == "__main__":
    sys.exit(main())
