"""The judge of the soak benchmark: a run without a fault passes, and each kind of fault is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.soak import judge as soak_judge
from benchmarks.soak.books import DAY_SECONDS, DAYS_APART, Books
from benchmarks.soak.due import due
from benchmarks.soak.judge import Judge, Judged
from benchmarks.soak.report import Point, figures, pictures, slope
from benchmarks.soak.web import DOWN, SoakWeb, forbidden, is_down
from crawlerproject.reasons import Reason
from crawlerproject.stores.logs.request_log import attempt_line

BEGAN = 1_795_000_000.0
PORT = 8000
HOSTS = {"de-de.s00001.test": "127.8.0.1", "fr-fr.s00010.test": "127.8.0.2"}
PATHS = {"de-de": ["/a.html", "/b.html"], "fr-fr": ["/index.html", "/sect.apt.html"]}
_DIGEST = "A" * 32
_SECONDS = 0.01  # that an answer takes


class Told:
    """The files of a soak of one round, made line by line."""

    def __init__(self, folder: Path) -> None:
        plan = {"hosts": 2, "port": PORT, "cut_port": 1, "workers": 1, "seed": 1}
        self.books = Books.open(folder, plan)
        self.turn = self.books.begin_round(BEGAN, 45.0)
        self.turn.ended, self.turn.whole = BEGAN + 100, True
        self.web = SoakWeb(folder / "web", PORT, 1, HOSTS)
        for name in ("web", "crawl/worker-1/log", "crawl/worker-1/index"):
            (folder / name).mkdir(parents=True)

    def served(self, at: float, host: str, path: str, **more: Any) -> None:
        """A request in the server's log, ``at`` seconds after the beginning."""
        said = {"end": BEGAN + at + _SECONDS, "took": _SECONDS, "host": f"{host}:{PORT}", "ip": HOSTS[host]}
        said |= {"path": path, "status": 200, "generation": 0, "edition": "0", "fault": ""}
        with self.web.log.open("a") as log:
            log.write(json.dumps(said | more) + "\n")

    def logged(self, at: float, host: str, path: str, **more: Any) -> None:
        """The same in the crawl's log, by the crawl's clock."""
        begins = BEGAN + at + self.turn.ahead_seconds
        given = {"status": 200, "reason": Reason.FETCHED, "ip": HOSTS[host], "digest": _DIGEST}
        attempt = attempt_line(begins, begins + _SECONDS, url=f"http://{host}:{PORT}{path}", **{**given, **more})
        with (self.books.crawl / "worker-1/log/requests-2026-11-20.jsonl").open("a") as log:
            log.write(json.dumps(attempt) + "\n")

    def archived(self, host: str, path: str, status: int = 200) -> None:
        """The same in the archive's index."""
        entry = {"url": f"http://{host}:{PORT}{path}", "status": str(status), "digest": _DIGEST}
        with (self.books.crawl / "worker-1/index/a.cdxj").open("a") as index:
            index.write(f"test,s) 29991231000000 {json.dumps(entry)}\n")

    def visited(self, at: float, host: str, path: str) -> None:
        """A page that was fetched as it should be."""
        self.served(at, host, path)
        self.logged(at, host, path)
        self.archived(host, path)

    def judged(self, monkeypatch: pytest.MonkeyPatch) -> Judged:
        """What the judge says of all that."""
        monkeypatch.setattr(soak_judge, "reached", lambda _: PATHS)
        pages = [(name, path, 0, _DIGEST) for name, paths in PATHS.items() for path in paths]
        monkeypatch.setattr(soak_judge, "digests", lambda *_: iter(pages))
        return Judge(self.web, self.books).run()


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """A round without a fault, in which a 503 was tried again and a kill cost an answer."""
    made = Told(tmp_path)
    german, french = HOSTS
    made.served(0.0, german, "/a.html", status=503, fault="busy")
    made.logged(0.0, german, "/a.html", status=503, reason=Reason.RATE_LIMITED)
    made.archived(german, "/a.html", 503)
    made.visited(2.0, german, "/a.html")
    made.visited(3.0, german, "/b.html")
    made.served(0.0, french, "/index.html")
    made.books.note("events", {"kind": "kill worker", "time": BEGAN + 0.5, "until": BEGAN + 0.5})
    made.visited(1.0, french, "/index.html")
    made.visited(4.0, french, "/sect.apt.html")
    return made


def test_a_run_without_a_fault_passes(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are counted on both sides, and what a kill cost is told apart."""
    judged = told.judged(monkeypatch)

    assert judged.faults == []
    assert judged.numbers["faults"] == {
        "busy": {"rate-limited": 1},
        "none": {"fetched": 4, "lost with a killed worker": 1},
    }
    assert (judged.numbers["taken"], judged.numbers["lost"], judged.numbers["captures"]) == (4, 1, 5)


def _unknown(told: Told, german: str) -> None:
    told.logged(50.0, german, "/b.html", status=404, reason=Reason.HTTP_ERROR)


def _unlogged(told: Told, german: str) -> None:
    told.served(50.0, german, "/b.html")


def _misnamed(told: Told, german: str) -> None:
    told.served(50.0, german, "/c.html", status=503, fault="away")
    told.logged(50.0, german, "/c.html", status=503, reason=Reason.HTTP_ERROR)


def _hasty(told: Told, german: str) -> None:
    told.served(3.0 + _SECONDS + 0.001, german, "/c.html")
    told.logged(3.0 + _SECONDS + 0.001, german, "/c.html")


def _twice(told: Told, german: str) -> None:
    told.archived(german, "/b.html")


def _other(told: Told, german: str) -> None:
    told.served(50.0, german, "/b.html")
    told.logged(50.0, german, "/b.html", digest="B" * 32)


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (_unknown, "our log has a request that the server's has not"),
        (_unlogged, "in no log of ours"),
        (_misnamed, "fault 'away' became 'http-error'"),
        (_hasty, "a pause at a host was cut"),
        (_twice, "archived twice"),
        (_other, "is not what was served"),
    ],
)
def test_each_fault_is_found(
    told: Told, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Told, str], None], word: str
) -> None:
    """One line too many or too few, anywhere."""
    damage(told, next(iter(HOSTS)))

    assert any(word in fault for fault in told.judged(monkeypatch).faults)


def test_a_page_that_was_left_out_is_found(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a round that is over; of one that goes on it is only counted."""
    monkeypatch.setitem(PATHS, "de-de", ["/a.html", "/b.html", "/never.html"])

    assert any("that was due was not archived" in fault for fault in told.judged(monkeypatch).faults)

    told.turn.whole = False
    judged = told.judged(monkeypatch)
    assert (judged.faults, judged.numbers["left"]) == ([], 1)


def test_rounds_are_days_apart_and_pass_midnight(tmp_path: Path) -> None:
    """By the crawl's clock; a round that was interrupted goes on, also when the folder is opened anew."""
    books = Books.open(tmp_path, {"hosts": 1})
    first = books.begin_round(BEGAN, 45.0)
    assert Books.open(tmp_path, {}).begin_round(BEGAN + 500, 45.0) == first
    first.ended = BEGAN + 600
    second = books.begin_round(BEGAN + 600, 45.0)

    for turn in (first, second):
        assert (turn.began + turn.ahead_seconds) % DAY_SECONDS == pytest.approx(DAY_SECONDS - 45, abs=1)
    assert second.day - first.day == DAYS_APART


def test_what_is_due_follows_robots_and_outages() -> None:
    """Forbidden in every second generation; down in one of seven, never in the first."""
    web = SoakWeb(Path(), PORT, 1, {"de-de.s00015.test": "", "fr-fr.s00010.test": ""})
    assert forbidden("fr-fr.s00010.test", 1) == "/sect.a"
    assert forbidden("fr-fr.s00010.test", 2) == forbidden("de-de.s00015.test", 1) == ""
    assert [number for number in range(9) if is_down("de-de.s00015.test", number)] == [1, 8], DOWN
    assert list(due(web, 1, PATHS)) == [f"http://fr-fr.s00010.test:{PORT}/index.html"]


def test_the_slope_is_that_within_lives() -> None:
    """Each process begins at a level of its own; what it takes to warm up is left out."""
    lives = [
        [Point(base + 100 * step, 10.0 * step, level + 50 * step, 7) for step in range(20)]
        for base, level in ((0, 1_000), (2_000, 9_000))
    ]
    found = slope(lives, 0, "memory_bytes")["per_100000_requests"]
    assert found == pytest.approx(50_000)
    assert slope(lives, 0, "descriptors")["per_100000_requests"] == 0
    assert slope([lives[0][:3]], 0, "memory_bytes")["per_100000_requests"] is None


def test_the_report_draws_what_was_sampled(tmp_path: Path) -> None:
    """Two samples are a picture; a worker that is down has no point."""
    books = Books.open(tmp_path / "soak", {})
    worker = {"frontier_bytes": 10, "archive_bytes": 20, "index_bytes": 1, "log_bytes": 1, "warc_files": 1}
    worker["commit_age_seconds"] = -1
    seen = {"pid": 1, "memory_bytes": 1 << 20, "descriptors": 9}
    for number in range(2):
        processes = dict.fromkeys(("worker-1", "worker-2", "supervisor")[: 3 - number], seen)
        workers = {"worker-1": worker, "worker-2": worker}
        sample = {"time": BEGAN + 5 * number, "requests": 100 * number, "processes": processes, "workers": workers}
        books.note("samples", sample)

    names = pictures(books, tmp_path / "pictures")

    assert len(list((tmp_path / "pictures").glob("soak-*.svg"))) == len(names) == 6
    assert figures(books, Judged())["worker-1"]["peak_mib"] == 1.0
