"""Indexes and backups that strangers made: what an operator's command does with them stays where it belongs."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.backup.making import read_backup
from tests.commands.crawled import scrapy
from tests.hostile.ledger import pays

DIGEST = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """A server that no one meant: its address, and what it was asked."""
    asked: list[str] = []

    class Any(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x" * 1000)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Any)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def line(number: int, **fields: object) -> str:
    """One line of a CDXJ index, with some of its fields otherwise."""
    usual = {"url": f"http://a.test/{number}", "status": "200", "digest": DIGEST, "length": "900", "offset": "0"}
    return f"test,a)/{number} 20260901000000 {json.dumps(usual | {'filename': 'a.warc.gz'} | fields)}"


def test_an_index_leads_nowhere_but_below_its_base(tmp_path: Path, elsewhere: tuple[str, list[str]]) -> None:
    """Servers, files of this machine, spans of no size or of a terabyte: each is refused, and nothing is asked for."""
    place, asked = elsewhere
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "a.warc.gz").write_bytes(b"no record")
    (tmp_path / "secret.warc.gz").write_bytes(b"no one's business")
    names = [f"{place}/a.warc.gz", f"{place}/?delete=1", "file:///etc/hostname", "/etc/hostname", "../secret.warc.gz"]
    names += ["x/../../secret.warc.gz", "a\r\norigin: forged"]
    spans: list[dict[str, object]] = [{"offset": "-5"}, {"length": "-1"}, {"length": str(1 << 40)}]
    lines = [line(number, filename=name) for number, name in enumerate(names)]
    lines += [line(50 + number, **span) for number, span in enumerate(spans)]
    (tmp_path / "index.cdxj").write_text("\n".join(lines) + "\n")

    done = scrapy(
        "commoncrawl", str(tmp_path / "index.cdxj"), "--base", str(tmp_path / "base"), "--fetch-records", "--pause=0",
        folder=tmp_path / "crawl",
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    said = done.stdout + done.stderr
    assert said.count("is not below the place of the others") == len(names), said
    assert said.count("are no record") == len(spans)
    pays("an index whose records lie elsewhere", "those it names", len(asked), "requests", at_most=0)


def test_an_index_of_nonsense_is_read_past(tmp_path: Path) -> None:
    """Fields of any type and size, nested a thousand deep, megabytes in a line: the good line among them counts."""
    nonsense: list[dict[str, object]] = [
        {"url": 7}, {"url": ["a"]}, {"url": "http://" + "a" * 70_000}, {"offset": "9" * 5000}, {"offset": None},
        {"offset": 1e308}, {"status": {"a": 1}}, {"digest": 5}, {"length": True}, {"filename": None}, {"languages": 9},
    ]  # fmt: skip
    lines = [line(0), *(line(1, **fields) for fields in nonsense), "test,a)/ 20260901000000 " + "[" * 5000]
    lines += ["{}", "", "\x00\x1b[2J {", 'test,a)/ 99999999999999 {"url": "http://a.test/late"}']
    (tmp_path / "index.cdxj").write_text("\n".join(lines) + "\n")

    done = scrapy("commoncrawl", str(tmp_path / "index.cdxj"), folder=tmp_path / "crawl")

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    why = scrapy("why", "--json", "http://a.test/0", folder=tmp_path / "crawl")
    assert json.loads(why.stdout)["state"] == "done"


def _manifest(**folder: object) -> dict[str, object]:
    of = {"name": "", "has_frontier": True, "closed": [], "open_file": None}
    return {"format": 1, "made_at": 1.0, "crawl": "x", "folders": [of | folder], "files": {}}


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a folder above": lambda home: _manifest(name="../victim"),
    "a folder anywhere": lambda home: _manifest(name=str(home / "victim")),
    "a folder that is none": lambda home: _manifest(name=".."),
    "a file above": lambda home: _manifest(closed=["../../victim/kept.warc.gz"]),
    "an open file above": lambda home: _manifest(open_file=["../../victim/kept.warc.gz", 1]),
    "no folders": lambda home: {"format": 1},
    "nothing": lambda home: [],
    "a text for files": lambda home: _manifest() | {"files": "all"},
    "no moment": lambda home: _manifest() | {"made_at": []},
    "a thousand lists": lambda home: json.loads("[" * 900 + "]" * 900),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_backup_that_leads_elsewhere_is_refused(kind: str, tmp_path: Path) -> None:
    """One sentence, status 2; what it named, and the crawl, are as they were."""
    backup, victim = tmp_path / "backup", tmp_path / "victim"
    for folder in (backup / "frontier", victim / "frontier"):
        folder.mkdir(parents=True)
    (victim / "kept.warc.gz").write_bytes(b"kept")
    (victim / "frontier" / "CURRENT").write_text("kept")
    (backup / "backup.json").write_text(json.dumps(HOSTILE[kind](tmp_path)))

    done = scrapy("state", "restore", str(backup), folder=tmp_path / "crawl")

    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot be read" in done.stderr
    found = sorted(str(path.relative_to(victim)) for path in victim.rglob("*"))
    changed = int(found != ["frontier", "frontier/CURRENT", "kept.warc.gz"])
    pays("a backup whose names lead out of it", "the operator's files", changed, "changed", at_most=0)


def test_a_backup_with_links_to_files_of_others_is_refused(tmp_path: Path) -> None:
    """What a link leads to would be copied into the crawl."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "backup" / "frontier").mkdir(parents=True)
    (tmp_path / "backup" / "frontier" / "000001.log").symlink_to(tmp_path / "secret")
    (tmp_path / "backup" / "backup.json").write_text(json.dumps(_manifest()))

    with pytest.raises(OperatorError, match="leads out"):
        read_backup(tmp_path / "backup")
