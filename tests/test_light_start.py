"""Commands that look at a folder start without Twisted and without the crawl."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crawlerproject.command_list import GROUPED
from crawlerproject.light_start import can_be_light
from tests.web.zygote import PROJECT

LOOKING = sorted(GROUPED - {"crawl", "fleet", "fetch", "parse", "shell", "view", "reparse", "runspider"})
# Of a crawl that runs; its checks before a start are files of their own, which forecast and plan use.
HEAVY = (
    *("twisted", "lxml.html", "scrapy.core", "scrapy.crawler", "scrapy.http", "scrapy.commands"),
    *(
        "crawlerproject.crawl.running_crawl",
        "crawlerproject.fetch.download_handler",
        "crawlerproject.guard",
        "crawlerproject.spiders",
    ),
    *("crawlerproject.middlewares", "crawlerproject.extensions", "crawlerproject.pipelines"),
)
# What some questions need, which import it as they are asked: numbers, tables, SQL, an index of words, pushes of feeds.
ASKED_FOR = ("numpy", "pyarrow", "duckdb", "tantivy", "crawlerproject.rules.feeds.websub")
LIGHTEST = ("audit", "export", "hosts", "index", "load", "report", "requests", "status", "traps", "verify", "wacz")
_PROGRAM = f"""
import sys
from importlib import import_module
from crawlerproject import light_start
light_start._install()
for name in {[*LIGHTEST, *LOOKING]!r}:
    begun = name in {LIGHTEST!r} and f"crawlerproject.commands.{{name}}" not in sys.modules
    import_module(f"crawlerproject.commands.{{name}}").Command()
    for heavy in {HEAVY!r} + ({ASKED_FOR!r} if begun else ()):
        if heavy in sys.modules:
            sys.exit(f"{{name}} imports {{heavy}}")
from scrapy import Request, signals  # who needs all of it has it
print(Request("http://a/").url, signals.__name__, import_module("scrapy").Spider.__name__)
"""

_LATE = """
import sys
from crawlerproject import light_start
light_start.run_late(ours=True)
from scrapy import cmdline
from scrapy.http import TextResponse
from twisted.internet import asyncioreactor, ssl
late = ("OpenSSL", "cryptography", "charset_normalizer.api", "pydoc", "unittest")
print(*[name for name in late if name in sys.modules])
from twisted.internet import _newtls
import charset_normalizer, scrapy.utils.versions, xmlrpc.server
print(ssl.CertificateOptions().getContext().__class__.__name__)
print(_newtls.TLSMemoryBIOFactory(ssl.CertificateOptions(), True, None).__class__.__name__)
print(TextResponse("http://a/", body="Grüße".encode()).text)
print(charset_normalizer.__version__ > "3", bool(scrapy.utils.versions.get_openssl_version()))
from twisted.protocols.tls import TLSMemoryBIOFactory
class Derived(TLSMemoryBIOFactory): pass
class Server(xmlrpc.server.SimpleXMLRPCServer): pass
from crawlerproject.rules.archive.index_rows import CdxjEntry
from crawlerproject.stores.index import parquet_tables
row = CdxjEntry(0, 9, "http://a/", "20260101000000", "text/html", "text/html", 200, "A" * 32, 0, 9, "", "")
table = parquet_tables.tables_of("a.warc.gz", [row])["warc"]
print(len(parquet_tables.written(table)) > 1000, "numpy" in sys.modules)
import numpy  # for whoever else asks
"""
_COLLECTS = """
import gc
from crawlerproject.__main__ import main
try:
    main()
finally:
    print("collects:", gc.isenabled())
"""


def test_no_command_that_looks_imports_the_crawl() -> None:
    """All of them in one process; afterwards Scrapy is whole for what asks for it."""
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], cwd=PROJECT, capture_output=True, text=True, check=False)

    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == "http://a/ scrapy.signals Spider\n"


def test_what_a_crawl_runs_late() -> None:
    """It has not run when Scrapy is there, and is whole for what asks for it: TLS, guesses of encodings, XML-RPC.

    Arrow does without numpy.
    """
    command = [sys.executable, "-c", _LATE]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == "\nContext\nTLSMemoryBIOFactory\nGrüße\nTrue True\nTrue False\n"


def test_refusals_are_those_of_scrapy() -> None:
    """A setting without a value, and a folder that is not there: one line, status 2."""
    for arguments, said in (
        (("status", "-s", "CRAWL_DIR"), "error: Invalid -s value, use -s NAME=VALUE\n"),
        (
            ("status", "-s", "CRAWL_DIR=/nowhere"),
            "There is no folder /nowhere; name a crawl's folder, or set CRAWL_DIR.\n",
        ),
    ):
        command = [sys.executable, "-c", _COLLECTS, *arguments]
        ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert (ended.stderr, ended.returncode) == (said, 2)
        assert ended.stdout == "collects: True\n"  # garbage, as a long command must


@pytest.mark.parametrize(
    ("typed", "light"),
    [
        ("status", True),
        ("hosts --sort queued -s CRAWL_DIR=x", True),
        ("status -h", False),
        ("status --prof=x", False),  # as argparse completes it
        ("status -L DEBUG", False),
        ("crawl web", False),
        ("version", False),
        ("", False),
    ],
)
def test_what_starts_so(typed: str, light: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours that need no crawler, unless a global option of Scrapy's is given."""
    monkeypatch.delitem(sys.modules, "scrapy", raising=False)
    assert can_be_light(typed.split(), GROUPED) is light


def test_never_once_scrapy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there is nothing to save."""
    monkeypatch.setitem(sys.modules, "scrapy", sys)
    assert not can_be_light(["status"], GROUPED)
