"""PageRank and harmonic centrality on many links: CPU and memory of ``scrapy rank``.

``python -m benchmarks.rank [--edges 10000000]``: a web whose in-links follow a power law, of a fifth as many pages on a
thousand hosts; then harmonic centrality alone, of 20,000 hosts.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np

from benchmarks.engines.__main__ import ranked, web
from crawlerproject.batch.pagerank import harmonic
from crawlerproject.stores.crawl_dir import CrawlDir

HOSTS, LINKS = 20_000, 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rank-") as name:
        for line in ranked(web(CrawlDir(name, "web"), given.edges), f"{given.edges:,} links", [[]]):
            print(f"{line.what}: {line.rows:,} pages, {line.cost}")
    chance = np.random.default_rng(1)
    targets = np.sort((HOSTS * chance.random(LINKS) ** 3).astype(np.int64))
    began = time.process_time()
    values = harmonic(HOSTS, chance.integers(0, HOSTS, LINKS), targets)
    print(f"harmonic centrality of {HOSTS:,} hosts in {time.process_time() - began:.1f} s, highest {values.max():.0f}")


if __name__ == "__main__":
    main()
