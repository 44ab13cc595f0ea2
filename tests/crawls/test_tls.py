"""Certificates: a bad one gets no request, its kind is in the log and the host's record; own hosts may be allowed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.stores.logs.request_log import read_log
from tests.web import zygote
from tests.web.judge import read_visits
from tests.web.profiles.tls import HOSTS, TlsWeb, tls_web
from tests.web.running import HASTE, crawl_command, measured

BAD = {name: kind for name, kind in HOSTS.items() if kind and name != "own.test"}
SETTINGS = {**HASTE, "PACE_PRESET": "mirror", "PACE_START_SECONDS": "0.25", "FRONTIER_MAX_REST_SECONDS": "2"}


class Crawled(NamedTuple):
    """A finished crawl."""

    web: TlsWeb
    folder: Path
    output: str


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("tls")
    with tls_web(folder / "web") as web:
        log = folder / "crawl.log"
        settings = {**SETTINGS, "FETCH_CA_FILE": str(web.folder / "ca.pem"), "TLS_ALLOW_HOSTS": "own.test"}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        assert measured(command, log).status == 0, log.read_text()[-3000:]
        yield Crawled(web, folder / "crawl", log.read_text())


def test_only_good_and_allowed_hosts_saw_a_request(crawled: Crawled) -> None:
    """By the server's log."""
    asked = Counter(visit.host for visit in read_visits(crawled.web.folder / "server.jsonl"))
    assert asked == {"good.test": 3, "own.test": 3}


@pytest.mark.parametrize(("name", "kind"), BAD.items())
def test_the_kind_of_error_is_in_the_log_and_in_the_hosts_record(crawled: Crawled, name: str, kind: str) -> None:
    """Each by its word; nothing else was tried at once."""
    host = f"{name}:{crawled.web.port}"
    rows = [row for row in read_log(crawled.folder / "log") if row["host"] == host]
    assert {row["reason"] for row in rows} == {"tls-certificate"}
    assert all(str(row["error"]).startswith((f"{kind}: ", "incomplete-chain: ")) for row in rows)
    # How many there are is a matter of how long the crawl lasts; each waits for the longest rest that HASTE allows.
    pauses = [moment(after["time"]) - moment(before["end"]) for before, after in pairwise(rows)]
    assert all(
        pause >= float(HASTE["BACKOFF_MAX_SECONDS"]) * 0.9 for pause in pauses
    )  # rests have ten per cent of jitter

    command = [sys.executable, "-m", "scrapy", "why", "-s", f"CRAWL_DIR={crawled.folder}", f"https://{host}/"]
    told = zygote.run(command)

    assert told.returncode == 0, told.stderr
    assert str(rows[-1]["error"]) in told.stdout


def moment(text: object) -> float:
    """Epoch seconds of a time in the log."""
    return datetime.fromisoformat(str(text)).timestamp()


def test_unverified_captures_say_so(crawled: Crawled) -> None:
    """In the log at the start, and in the metadata record of each page of the allowed host alone."""
    assert "TLS_ALLOW_HOSTS: certificates are not verified for own.test" in crawled.output
    marked = Counter[str]()
    for path in (crawled.folder / "warc").glob("*.warc.gz"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "metadata" and b"tls-certificate: not verified" in record.content_stream().read():
                    marked[record.rec_headers.get_header("WARC-Target-URI").split("/")[2].split(":")[0]] += 1
    assert marked == {"own.test": 3}
