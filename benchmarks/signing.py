"""``python -m benchmarks.signing``: what a signature adds to a page, in instructions (Valgrind).

Requests are written, and their WARC records packed, as a crawl does both, unsigned and with IDENTITY_COVERS=authority
and path; what each kind adds is compared with a page of ``benchmarks/check.py``, by its stored figure. (Whole crawls
differ by more than that from one run to the next on a busy machine: their loop turns more or less often.) Exit status
1 when a page is more than 1 % dearer by authority, or 5 % by path. The operation alone takes 467,000 instructions in
OpenSSL 4.0.3 and 270,000 in libsodium (PyNaCl 1.6.2): 7.9 and 4.6 % of a page of 5.9 million.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from isal import igzip

from benchmarks.check import FIGURES, interpreter
from crawlerproject.fetch.http1 import RequestWriter, parse_target
from crawlerproject.fetch.signing import COVERS, Signer
from crawlerproject.rules.identity.key_ring import KeyRing, new_key
from tests.web.running import PROJECT

UNSIGNED = "unsigned"
MOST_DEARER = {"authority": 0.01, "path": 0.05}
REQUESTS, HOSTS = 1000, 50
_COUNTED = re.compile(r"I +refs: +([\d,]+)")


def write(word: str, requests: int) -> None:
    """Write and pack so many requests, of hosts that each have many."""
    ring = KeyRing("https://bot.example", (new_key(Ed25519PrivateKey.generate(), time.time()),))
    sign = None if word == UNSIGNED else Signer(lambda: ring, COVERS[word]).fields
    writer = RequestWriter("TestBed/1.0 (+https://example.org/bot; bot@example.org)", sign)
    targets = [parse_target(f"https://host{at % HOSTS}.example/page/{at}") for at in range(REQUESTS)]
    for target in targets[:HOSTS]:  # a host's first signature serves it for hours
        writer.write("GET", target, {}, b"")
    for target in targets[:requests]:
        igzip.compress(writer.write("GET", target, {}, b""), 3)


def counted(word: str, requests: int) -> int:
    """Instructions of a process that does so."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable]
    run = [*command, "-m", "benchmarks.signing", word, str(requests)]
    env = os.environ | {"PYTHONHASHSEED": "0"}
    ended = subprocess.run(run, cwd=PROJECT, env=env, capture_output=True, text=True, check=True)
    found = _COUNTED.search(ended.stderr)
    assert found is not None, ended.stderr[-1000:]
    return int(found[1].replace(",", ""))


def main() -> int:
    """Count and compare."""
    if len(sys.argv) > 1:
        write(sys.argv[1], int(sys.argv[2]))
        return 0
    a_page = json.loads(FIGURES.read_text())[interpreter()]["a page"]
    each = {word: (counted(word, REQUESTS) - counted(word, 0)) / REQUESTS for word in (UNSIGNED, *MOST_DEARER)}
    dear = 0
    for word, most in MOST_DEARER.items():
        added = each[word] - each[UNSIGNED]
        print(f"{word:10} adds {added:9,.0f} instructions to a page of {a_page:,}: {added / a_page:+.2%}")
        dear += added > most * a_page
    return int(bool(dear))


if __name__ == "__main__":
    sys.exit(main())
