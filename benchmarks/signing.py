"""``python -m benchmarks.signing``: what a page costs with signed requests against without, in instructions (Valgrind).

Three times the crawl of ``benchmarks/check.py``: unsigned, IDENTITY_COVERS=authority and path. Exit status 1 when a
page is more than 1 % dearer by authority, or 5 % by path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.check import FEW, HOSTS, MANY, WHOLE, crawled
from benchmarks.real_pages.site import RealSite, install, nginx
from benchmarks.side_by_side.cases import small_pages
from crawlerproject.rules.identity.key_ring import KeyRing, new_key
from crawlerproject.stores.operator_files.key_file import write_keys
from tests.web.running import PROJECT

MOST_DEARER = {"unsigned": 0.0, "authority": 0.01, "path": 0.05}


def a_page(site: RealSite, settings: dict[str, str]) -> float:
    """Instructions a page."""
    short, few = crawled(site, FEW, False, settings)
    whole, many = crawled(site, MANY, False, settings)
    return (whole[WHOLE] - short[WHOLE]) / (many - few)


def main() -> int:
    """Count and compare."""
    install()
    if shutil.which("valgrind") is None:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", "valgrind"], check=True)
    os.chdir(PROJECT)
    dear = []
    with tempfile.TemporaryDirectory(prefix="signing-") as scratch:
        keys = Path(scratch) / "identity.json"
        # A directory that cannot be reached is a warning at the start.
        write_keys(keys, KeyRing("https://localhost:1", (new_key(Ed25519PrivateKey.generate(), time.time()),)))
        site = small_pages(Path(scratch) / "a").site
        (site.folder / "few.txt").write_text("\n".join(site.seeds[:HOSTS]))
        with nginx(site):
            crawled(site, FEW, by_library=False)  # compiles what is not compiled yet
            plain = 0.0
            for word, most in MOST_DEARER.items():
                signed = {"IDENTITY_KEY_FILE": str(keys), "IDENTITY_COVERS": word}
                count = a_page(site, {} if word == "unsigned" else signed)
                plain = plain or count
                dearer = count / plain - 1
                print(f"{word:10} {count / 1e6:8.3f} million instructions a page  {dearer:+.2%}", flush=True)
                if dearer > most:
                    dear.append(word)
    return int(bool(dear))


if __name__ == "__main__":
    sys.exit(main())
