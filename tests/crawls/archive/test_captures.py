"""What is stored is what was sent: a crawl of answers that break the rules, against the server's own copy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.archive.raw_server import raw_server
from tests.web.answers import answer
from tests.web.graph import Answer
from tests.web.profiles.ugly import READABLE
from tests.web.running import HASTE, crawl_command, measured

_BODY = b"<html><title>odd</title><p>still a page</p></html>\n"
_TYPE = b"Content-Type: text/html\r\n"
_LENGTH = b"Content-Length: %d\r\n" % len(_BODY)
_LIMIT_BYTES = 20_000
_LONGER = b"Content-Length: %d\r\n" % (len(_BODY) + 11)  # than what is sent
_ROBOTS = answer(b"User-agent: *\nDisallow: /never\n", kind="text/plain")


def _made(head: bytes, body: bytes = _BODY, *, close: bool = False) -> Answer:
    return Answer(200, (head + b"\r\n" + body,), close=close)


# Every odd head whose lines are all true of what is stored: they must come through to the byte.
VERBATIM = {
    **{name: READABLE[name] for name in ("no-colon", "space-in-name", "empty-name", "length-twice", "folded",
                                         "long-header", "latin-header", "no-reason", "status-999", "wrong-encoding",
                                         "http-0-style")},
    "spacing": _made(b"HTTP/1.1 200 OK\r\nX-One :1\r\nX-Two:\t2 \r\nX-Three:\r\nx-four:   4\r\n" + _TYPE + _LENGTH),
    "empty-reason": _made(b"HTTP/1.1 200 \r\n" + _TYPE + _LENGTH),
    "latin-reason": _made(b"HTTP/1.1 200 Tr\xe8s bien\r\n" + _TYPE + _LENGTH),
    "name-twice": _made(b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\nSet-Cookie: a\r\n" + _TYPE + _LENGTH),
    "until-close": _made(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + _TYPE, close=True),
    "odd-case": _made(b"HTTP/1.1 200 oK\r\ncOnTeNt-TyPe: text/html\r\nCONTENT-LENGTH: %d\r\n" % len(_BODY)),
    "control": _made(b"HTTP/1.1 200 OK\r\nX-Bell: \x07\x7f\r\n" + _TYPE + _LENGTH),
}  # fmt: skip
_CHUNKED = b"HTTP/1.1 200 OK\r\n" + _TYPE + b"Transfer-Encoding: chunked\r\n"
# What must be edited so that the head does not belie the body: what is sent, and what must be stored instead.
EDITED = {
    "lf-only": (
        _made((b"HTTP/1.1 200 OK\r\nX-A: b\r\n" + _TYPE + _LENGTH + b"\r\n").replace(b"\r\n", b"\n")[:-1]),
        b"HTTP/1.1 200 OK\r\nX-A: b\r\n" + _TYPE + _LENGTH + b"\r\n",
    ),
    "informational": (
        Answer(200, (b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n",
                     *_made(b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH).pieces)),
        b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH + b"\r\n",
    ),
    "chunked": (
        _made(_CHUNKED, b"%x\r\n%s\r\n0\r\n\r\n" % (len(_BODY), _BODY)),
        b"HTTP/1.1 200 OK\r\n" + _TYPE + b"X-Crawler-Transfer-Encoding: chunked\r\n" + _LENGTH + b"\r\n",
    ),
    "bad-chunk": (
        _made(_CHUNKED, b"%x\r\n%s\r\nzz\r\nno\r\n" % (len(_BODY), _BODY), close=True),
        b"HTTP/1.1 200 OK\r\n" + _TYPE + b"X-Crawler-Transfer-Encoding: chunked\r\n" + _LENGTH + b"\r\n",
    ),
    "short": (
        _made(b"HTTP/1.1 200 OK\r\n" + _TYPE + _LONGER, close=True),
        b"HTTP/1.1 200 OK\r\n" + _TYPE + b"X-Crawler-" + _LONGER + _LENGTH + b"\r\n",
    ),
}  # fmt: skip
CUT = {
    "length": answer(b"x" * (3 * _LIMIT_BYTES), kind="text/plain"),
    "time": Answer(200, (b"HTTP/1.1 200 OK\r\n" + _TYPE + _LONGER + b"\r\n", *[b"."] * len(_BODY)), gap_seconds=0.25),
    "disconnect": EDITED["short"][0],
}  # fmt: skip
ERRORS = {f"error-{status}": answer(b"sorry", status=status) for status in (403, 404, 500)}
ANSWERS = {
    **VERBATIM,
    **{name: made for name, (made, _) in EDITED.items()},
    **{f"cut-{why}": made for why, made in CUT.items()},
    **ERRORS,
}


class Record(NamedTuple):
    """One record of the archive, its block as it stands there."""

    kind: str
    fields: dict[str, str]
    block: bytes


class Crawled(NamedTuple):
    """The finished crawl and the server's copies."""

    sent: dict[str, bytes]  # by name of the answer
    records: dict[str, list[Record]]  # by URL path, of the IPv4 host
    six: list[Record]  # of the IPv6 host
    folder: Path


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """One crawl of all answers."""
    folder = tmp_path_factory.mktemp("captures")
    pages = {f"/{name}": made for name, made in ANSWERS.items()} | {"/robots.txt": _ROBOTS, "/": answer(_BODY)}
    pace = dict.fromkeys(("PACE_MIN_SECONDS", "PACE_START_SECONDS", "PACE_IP_SECONDS"), "0.05")
    with raw_server(pages) as server:
        four, six = f"http://ugly.test:{server.port}", f"http://six.test:{server.port}"
        (folder / "hosts").write_text("127.0.0.1 ugly.test\n::1 six.test\n")
        (folder / "seeds.txt").write_text("\n".join([f"{six}/", *(f"{four}/{name}" for name in ANSWERS)]) + "\n")
        settings = {
            **HASTE,
            **pace,
            "PACE_PRESET": "mirror",
            "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8", "::1/128"]',
            "FETCH_MAX_BYTES": str(_LIMIT_BYTES),
            "FETCH_TIMEOUT_SECONDS": "2",
        }
        command = crawl_command(folder / "seeds.txt", folder / "crawl", folder / "hosts", settings)
        spent = measured(command, folder / "log.txt")
        assert spent.status == 0, (folder / "log.txt").read_text()[-3000:]
    records: dict[str, list[Record]] = {}
    for path in sorted((folder / "crawl" / "warc").iterdir()):
        assert check_file(path).flaws == []
        for record in _read(path):
            records.setdefault(record.fields.get("WARC-Target-URI", ""), []).append(record)
    by_path = {url.removeprefix(four): found for url, found in records.items() if url.startswith(four)}
    yield Crawled({path[1:]: sent for path, sent in server.sent.items()}, by_path, records[f"{six}/"], folder / "crawl")


def _read(path: Path) -> Iterator[Record]:
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, no_record_parse=True):
            yield Record(record.rec_type, dict(record.rec_headers.headers), record.raw_stream.read())


def _response(crawled: Crawled, name: str) -> Record:
    """The answer's record; of a failure, which may have been asked for twice, the last."""
    found = [record for record in crawled.records[f"/{name}"] if record.kind in ("response", "revisit")]
    failed = name == "status-999" or all(record.fields.get("WARC-Truncated") == "disconnect" for record in found)
    assert len(found) == 1 or failed
    return found[-1]


@pytest.mark.parametrize("name", VERBATIM)
def test_a_head_is_stored_as_the_server_sent_it(crawled: Crawled, name: str) -> None:
    """Order, case, spacing, folding, bytes outside ASCII: not one is changed; the body follows."""
    sent = crawled.sent[name]
    head = sent[: sent.index(b"\r\n\r\n") + 4]
    stored = _response(crawled, name)

    assert stored.block == (sent if stored.kind == "response" else head)


@pytest.mark.parametrize("name", EDITED)
def test_only_what_belies_the_stored_body_is_edited(crawled: Crawled, name: str) -> None:
    """The head that documents say, spelled out by hand; the body as it would be read."""
    stored = _response(crawled, name)

    assert stored.block == EDITED[name][1] + (b"" if stored.kind == "revisit" else _BODY)
    assert crawled.sent[name] == b"".join(EDITED[name][0].pieces)


@pytest.mark.parametrize("why", CUT)
def test_what_was_cut_says_why(crawled: Crawled, why: str) -> None:
    """By our limit of bytes or of time, by the server: record and log say so, and keep what came."""
    stored = _response(crawled, f"cut-{why}")
    body = stored.block.partition(b"\r\n\r\n")[2]
    sent = crawled.sent[f"cut-{why}"].partition(b"\r\n\r\n")[2]

    assert stored.fields["WARC-Truncated"] == why
    assert body
    assert sent.startswith(body)
    assert why != "length" or len(body) == _LIMIT_BYTES
    assert b"\r\nContent-Length: %d\r\n" % len(body) in stored.block
    rows = [row for row in read_log(crawled.folder / "log") if str(row["url"]).endswith(f"/cut-{why}")]
    assert {row["truncated"] for row in rows} == {why}
    assert len(rows) <= 1 + (why == "disconnect")


def test_robots_and_errors_are_archived_too(crawled: Crawled) -> None:
    """Whatever a server answered, with request, response and metadata; a 500 once for each time it was asked."""
    for path, status in (("/robots.txt", 200), ("/error-403", 403), ("/error-404", 404), ("/error-500", 500)):
        found = crawled.records[path]
        blocks = [record.block for record in found if record.kind in ("response", "revisit")]
        kinds = [record.kind for record in found]
        assert kinds.count("request") == kinds.count("metadata") == len(blocks)
        sent = crawled.sent[path[1:]]
        # The other host's robots.txt has the same payload: the later one of them is a revisit, its head alone.
        assert set(blocks) <= {sent, sent[: sent.index(b"\r\n\r\n") + 4]}
        assert blocks[0].startswith(b"HTTP/1.1 %d " % status)


def test_an_ipv6_server_is_archived_with_its_address(crawled: Crawled) -> None:
    """As RFC 5952 writes it."""
    kinds = {record.kind: record for record in crawled.six}

    assert kinds["request"].fields["WARC-IP-Address"] == "::1"
    assert kinds["response"].fields["WARC-IP-Address"] == "::1"


def test_the_metadata_record_has_the_pace_decision(crawled: Crawled) -> None:
    """What was promised, and what was waited since the host's last answer, as the request log's times say."""
    rows = sorted(read_log(crawled.folder / "log"), key=lambda row: str(row["time"]))
    rows = [row for row in rows if str(row["host"]).startswith("ugly.test")]
    last = ""
    for row in rows:
        path = "/" + str(row["url"]).split("/", 3)[3]
        found = [record.block.decode() for record in crawled.records[path] if record.kind == "metadata"]
        fields = [dict(line.split(": ", 1) for line in block.splitlines()) for block in found]
        assert f"{float(str(row['delay_seconds'])):.3f}" in {each["politenessDelaySeconds"] for each in fields}
        if not last:
            assert "politenessWaitedSeconds" not in fields[0]
        else:
            waited = (datetime.fromisoformat(str(row["time"])) - datetime.fromisoformat(last)).total_seconds()
            assert min(abs(waited - float(each["politenessWaitedSeconds"])) for each in fields) < 0.0011
            assert waited >= float(str(row["delay_seconds"])) - 0.001
        assert int(fields[0]["fetchTimeMs"]) >= 0
        assert fields[0]["hopsFromSeed"] == row["hop"]
        last = str(row["end"])
    assert len(rows) >= len(ANSWERS) + 1


def test_the_index_has_every_capture(crawled: Crawled) -> None:
    """A line for each response and revisit, none besides."""
    lines = [line for path in (crawled.folder / "index").glob("*.cdxj") for line in path.read_text().splitlines()]
    urls = sorted(json.loads(line.split(" ", 2)[2])["url"] for line in lines)
    everything = [*crawled.six, *(record for found in crawled.records.values() for record in found)]
    captures = [record for record in everything if record.kind in ("response", "revisit")]

    assert len(urls) == len(captures) + 1  # the IPv6 host's robots.txt is in neither list
