"""PageRank and harmonic centrality on many edges: time and memory.

``python -m benchmarks.rank [--edges 10000000] [--nodes 2000000]``: a graph whose in-links follow a power law.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from crawlerproject.batch.rank import graph_of, harmonic, pagerank


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    given = parser.parse_args()
    chance = np.random.default_rng(1)
    edges = np.empty((given.edges, 2), dtype=np.uint64)
    edges[:, 0] = chance.integers(0, given.nodes, given.edges)
    # Targets by a power law: a few are linked by very many.
    edges[:, 1] = (given.nodes * chance.random(given.edges) ** 3).astype(np.uint64)
    edges *= np.uint64(0x9E3779B97F4A7C15)  # ids as hashes are: all over 64 bits
    began = time.monotonic()
    graph = graph_of(edges)
    del edges
    print(f"{len(graph.sources):,} edges, {graph.nodes:,} nodes: numbered in {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    ranks = pagerank(graph)
    print(f"PageRank in {time.monotonic() - began:.1f} s, highest {ranks.max():.6f}")
    small = graph_of(np.column_stack((graph.sources[:1_000_000] // 100, graph.targets[:1_000_000] // 100)).astype("u8"))
    began = time.monotonic()
    values = harmonic(small, sample=500)
    print(
        f"harmonic centrality of {small.nodes:,} hosts in {time.monotonic() - began:.1f} s, highest {values.max():.0f}"
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
