"""Where there is no memory for a page, the native reader says so and reads the next."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crawlerproject import native
from tests.web.zygote import PROJECT, direct

pytestmark = pytest.mark.skipif(native.reader is None, reason=f"one reader only: {native.choice.why}")

# Lexbor needs some 100 bytes for each of these bytes: all the sizes in between fail at different places of it.
PROGRAM = """
import resource
from crawlerproject import native

page = native.reader
before = page.read(b"<p>one</p>")
source = b"<p a=b>x<b>" * 90_000
own = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
failed = 0
for megabytes in range(1, 60):
    resource.setrlimit(resource.RLIMIT_AS, (own + megabytes * 2**20, resource.RLIM_INFINITY))
    try:
        page.read(source)
    except MemoryError:
        failed += 1
    assert page.read(b"<p>one</p>") == before
print(failed)
"""


def test_a_page_without_memory_is_an_error_and_the_next_is_read() -> None:
    """Under a limit on the address space, at many places of the parser."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=PROJECT,
        env=direct(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert int(ended.stdout) > 20
