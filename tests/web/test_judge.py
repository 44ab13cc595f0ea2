"""The judge sees what is wrong, and only that."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.web.judge import (
    Attempt,
    Visit,
    judge_captures,
    judge_log,
    judge_pauses,
    pauses,
    read_attempts,
    read_visits,
)

PORT = 80


def visit(start: float, end: float, host: str = "a.test", ip: str = "127.0.0.2", **more: float) -> Visit:
    """A visit of /."""
    return Visit(start, end, host, ip, "/", 200, more.get("rest", 0.0))


def test_pauses_run_from_end_to_start() -> None:
    """The clock starts when the answer ended, not when it was asked for."""
    found = pauses([visit(0, 1), visit(3, 4), visit(4.5, 5)], "host")["a.test"]
    assert found == (3, 0.5, 0)


def test_long_answer_covers_later_ones() -> None:
    """A request during a long answer is an overlap, however many came in between."""
    found = pauses([visit(0, 10), visit(1, 2), visit(11, 12)], "host")["a.test"]
    assert (found.smallest, found.overlaps) == (-9, 1)


def test_kept_promises_have_no_faults() -> None:
    """Pauses at the promise, within tolerance, pass."""
    assert not judge_pauses([visit(0, 1), visit(1.999, 2)], host_seconds=1, ip_seconds=1).faults


def test_short_pause_is_a_fault_for_host_and_address() -> None:
    """One short pause is seen under both keys."""
    verdict = judge_pauses([visit(0, 1), visit(1.5, 2)], host_seconds=1, ip_seconds=1)
    assert [fault.split()[2] for fault in verdict.faults] == ["host", "ip"]


def test_neighbours_share_the_address_clock() -> None:
    """Two hosts at one address: only the address was hurried."""
    verdict = judge_pauses([visit(0, 1), visit(1.1, 2, "b.test")], host_seconds=1, ip_seconds=0.5)
    assert [fault.split()[2] for fault in verdict.faults] == ["ip"]


def test_floor_and_rest_raise_the_promise() -> None:
    """A Crawl-delay counts for its host, a Retry-After for the next pause."""
    visits = [visit(0, 1), visit(2, 3)]
    assert judge_pauses(visits, host_seconds=0.5, ip_seconds=0, floors={"a.test": 2.0}).faults
    assert judge_pauses([visit(0, 1, rest=5.0), visit(2, 3)], host_seconds=0.5, ip_seconds=0).faults


def test_an_answer_that_died_with_a_kill_asked_for_nothing() -> None:
    """It is in no log of ours: its robots.txt and its Retry-After were never known. What is logged counts."""
    robots = [visit(0, 1)._replace(path="/robots.txt"), visit(2, 3)._replace(path="/robots.txt")]
    usual: dict[str, Any] = {"host_seconds": 0.5, "ip_seconds": 0.0, "floors": {"a.test": 2.0}}
    assert judge_pauses(robots, **usual).faults
    assert not judge_pauses(robots, **usual, logged={}).faults
    assert judge_pauses([*robots, visit(4, 5)], **usual, logged={}).faults
    assert judge_pauses(robots, **usual, logged={"http://a.test:80/robots.txt": [Attempt(0, 1.1, 200, 0.5)]}).faults
    busy = [visit(0, 1, rest=5.0), visit(2, 3)]
    pace: dict[str, Any] = {"host_seconds": 0.5, "ip_seconds": 0.0}
    assert not judge_pauses(busy, **pace, logged={"http://a.test:80/": [Attempt(2, 3.1, 200, 0.5)]}).faults
    assert judge_pauses(busy, **pace, logged={"http://a.test:80/": [Attempt(0, 1.1, 429, 0.5)]}).faults


def test_logs_agree() -> None:
    """Times enclosed, statuses equal, the promised pause kept."""
    ours = {"http://a.test:80/": [Attempt(0, 1.1, 200, 0), Attempt(3, 4, 200, 2.0)]}
    assert not judge_log([visit(0.1, 1), visit(3.1, 3.9)], ours, PORT).faults


def test_log_differences_are_faults() -> None:
    """A missing line, another status, a time outside, a promise broken: one fault each."""
    url = "http://a.test:80/"
    visits = [visit(1, 2)]
    assert judge_log(visits, {}, PORT).faults
    assert judge_log([], {url: [Attempt(0, 3, 200, 0)]}, PORT).faults
    assert judge_log(visits, {url: [Attempt(0, 3, 404, 0)]}, PORT).faults
    assert judge_log(visits, {url: [Attempt(1.5, 3, 200, 0)]}, PORT).faults
    pair = [visit(1, 2), visit(3, 4)]
    assert judge_log(pair, {url: [Attempt(0, 2.5, 200, 0), Attempt(2.6, 5, 200, 4.0)]}, PORT).faults


def test_captures_are_compared_with_what_is_expected() -> None:
    """Missing, doubled, forbidden, unknown and doubly spelled addresses are faults; retried answers are not."""
    once, busy = Counter({200: 1}), Counter({429: 2, 200: 1})
    good = {"http://a/1": once, "http://a/2": busy, "http://a/robots.txt": Counter({200: 3})}
    assert not judge_captures(good, {"http://a/1", "http://a/2"}).faults
    assert judge_captures(good, {"http://a/1", "http://a/2", "http://a/3"}).faults == ["missing: http://a/3"]
    assert judge_captures({"http://a/1": Counter({200: 2})}, {"http://a/1"}).faults
    assert judge_captures(good, {"http://a/1"}, optional=["http://a/2"], forbidden=["http://a/1"]).faults
    assert judge_captures({"http://a/1": once}, set()).faults == ["not expected: http://a/1"]
    assert judge_captures(
        {"http://a/1": once, "http://a/2": once}, set(), aliases=[["http://a/1", "http://a/2"]]
    ).faults


def test_readers_take_both_servers_and_a_torn_line(tmp_path: Path) -> None:
    """nginx gives end and duration; our log's last line may be torn by a kill."""
    log = tmp_path / "access.jsonl"
    row = {"end": 2.5, "took": 0.5, "host": "a.test:80", "ip": "127.0.0.2", "path": "/", "status": 200}
    log.write_text(json.dumps(row) + "\n")
    assert read_visits(log) == [Visit(2.0, 2.5, "a.test", "127.0.0.2", "/", 200)]
    ours = {"time": "1970-01-01T00:00:01.500000+00:00", "end": "1970-01-01T00:00:02+00:00", "url": "http://a.test/",
            "status": 200, "ip": "127.0.0.2", "delay_seconds": 1.0}  # fmt: skip
    refused = {**ours, "ip": None, "status": None}
    text = f"{json.dumps(ours)}\n{json.dumps(refused)}\n" + '{"time": "torn'
    (tmp_path / "requests-1970-01-01.jsonl").write_text(text)
    assert read_attempts(tmp_path) == {"http://a.test/": [Attempt(1.5, 2.0, 200, 1.0)]}
