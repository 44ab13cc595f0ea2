"""``make bench-signing``: what a signature adds to the CPU of a page, by authority and by path.

What it adds is measured on a request as a crawl writes it and packs its WARC record, unsigned and signed in turns, in
seconds of CPU (medians of rounds): a page's share of it that noise cannot hide. What a page takes is that of a whole
crawl of PostgreSQL's manual over plain HTTP, its cheapest kind: user and system time of a crawl of all pages, without
those of a crawl of few, divided by the pages that it has more. Exit status 1 when a page is more than 1 % dearer by
authority, or 5 % by path. ``--crawls N`` compares so many whole crawls of each kind in turns, too.

In instructions (Valgrind) it is 8.8 % by path: Ed25519 runs at twice the instructions a second of what an interpreter
does, and Valgrind sees nothing of the kernel's work for a page.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from isal import igzip

from benchmarks.real_pages.site import RealSite, install, nginx
from benchmarks.side_by_side.cases import small_pages
from crawlerproject.fetch.http1 import RequestWriter, parse_target
from crawlerproject.fetch.signing import COVERS, Signer
from crawlerproject.rules.identity.key_ring import KeyRing, new_key
from crawlerproject.stores.operator_files.key_file import write_keys
from tests.web.running import PROJECT, crawl_command, measured

UNSIGNED = "unsigned"
MOST_DEARER = {"authority": 0.01, "path": 0.05}
WORDS = (UNSIGNED, *MOST_DEARER)
AGENT = "https://bot.invalid"  # answers nothing: a start says so, and goes on
REQUESTS, HOSTS, ROUNDS = 1000, 50, 31
FEW = 2  # pages of each host
_PACE = {f"PACE_{name}_SECONDS": "0.02" for name in ("MIN", "START", "IP")}


def own_ring() -> KeyRing:
    """A crawler's keys."""
    return KeyRing(AGENT, (new_key(Ed25519PrivateKey.generate(), time.time() - 1),))


def writing(word: str) -> Callable[[], float]:
    """Writes and packs requests of hosts that each have many; seconds of CPU of one."""
    ring = own_ring()
    sign = None if word == UNSIGNED else Signer(lambda: ring, COVERS[word]).fields
    writer = RequestWriter("TestBed/1.0 (+https://example.org/bot; bot@example.org)", sign)
    targets = [parse_target(f"https://host{at % HOSTS}.example/page/{at}") for at in range(REQUESTS)]

    def write() -> float:
        began = time.process_time()
        for target in targets:
            igzip.compress(writer.write("GET", target, {}, b""), 3)
        return (time.process_time() - began) / REQUESTS

    write()  # a host's first signature serves it for hours
    return write


def crawled(site: RealSite, word: str, pages_per_host: int = 0) -> tuple[float, int]:
    """(seconds of CPU, requests) of one crawl; 0 pages: all."""
    folder, key_file = site.folder / "crawl", site.folder / "identity.json"
    shutil.rmtree(folder, ignore_errors=True)
    site.log.write_bytes(b"")
    settings = {"PACE_PRESET": "mirror", "RENDER": "never", "LOG_LEVEL": "WARNING", **_PACE}
    if pages_per_host:
        settings["SCOPE_MAX_URLS_PER_HOST"] = str(pages_per_host)
    if word != UNSIGNED:
        write_keys(key_file, own_ring())
        settings |= {"IDENTITY_KEY_FILE": str(key_file), "IDENTITY_COVERS": word}
    command = crawl_command(site.folder / "seeds.txt", folder, site.folder / "hosts", settings, scope="host")
    spent = measured(command, site.folder / "crawl.log")
    if spent.status:
        sys.exit(f"the crawl ended with status {spent.status}:\n{(site.folder / 'crawl.log').read_text()[-2000:]}")
    return spent.cpu_seconds, site.log.read_bytes().count(b"\n")


def a_page(site: RealSite, word: str = UNSIGNED) -> float:
    """Seconds of CPU, the start left out."""
    (few_seconds, few), (seconds, every) = crawled(site, word, FEW), crawled(site, word)
    return (seconds - few_seconds) / (every - few)


def in_turns(of: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each gives, one after the other in every round."""
    found: dict[str, list[float]] = {word: [] for word in of}
    for _ in range(rounds):
        for word, measure in of.items():
            found[word].append(measure())
    return found


def main() -> int:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--crawls", type=int, default=0, help="whole crawls of each kind beside")
    given = parser.parse_args()
    install()
    os.chdir(PROJECT)
    with tempfile.TemporaryDirectory(prefix="signing-") as scratch:
        site = small_pages(Path(scratch) / "a").site
        with nginx(site):
            crawled(site, UNSIGNED, FEW)  # compiles what is not compiled yet
            page = min(a_page(site) for _ in range(3))  # what disturbs makes it dearer, and signatures seem cheap
            requests = {word: median(took) for word, took in in_turns({w: writing(w) for w in WORDS}, ROUNDS).items()}
            dear = 0
            print(f"a page takes {1000 * page:.2f} ms of CPU, a request unsigned {1e6 * requests[UNSIGNED]:.1f} µs")
            for word, most in MOST_DEARER.items():
                added = requests[word] - requests[UNSIGNED]
                print(f"{word:10} adds {1e6 * added:5.1f} µs: {added / page:+.2%} of {most:.0%}", flush=True)
                dear += added > most * page
            whole = in_turns({word: partial(a_page, site, word) for word in WORDS}, given.crawls)
    for word, found in whole.items() if given.crawls else ():
        ratios = sorted(signed / unsigned - 1 for signed, unsigned in zip(found, whole[UNSIGNED], strict=True))
        shown = ", ".join(f"{ratio:+.1%}" for ratio in ratios)
        print(f"{word:10} {1000 * median(found):.3f} ms a page in crawls, {median(ratios):+.1%} (each: {shown})")
    return int(bool(dear))


if __name__ == "__main__":
    sys.exit(main())
