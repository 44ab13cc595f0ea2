"""``scrapy audit`` as an operator runs it: logs of several days, compressed or not, good and bad."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from scrapy.cmdline import execute
from scrapy.utils.project import get_project_settings

from crawlerproject.reasons import Reason
from crawlerproject.stores.crawl_dir import CrawlDir, write_facts
from crawlerproject.stores.logs.request_log import DAY_SECONDS, RequestLog, attempt_line, tidy

_MIDNIGHT = 1_700_006_400.0  # 2023-11-15 00:00:00 UTC


class Ended(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


class Audit(Protocol):
    """Runs ``scrapy audit``."""

    def __call__(self, *arguments: str | Path) -> Ended: ...


@pytest.fixture
def audit(capsys: pytest.CaptureFixture[str]) -> Audit:
    """The command as Scrapy runs it, in this process."""

    def run(*arguments: str | Path) -> Ended:
        with pytest.raises(SystemExit) as ended:
            execute(["scrapy", "audit", *map(str, arguments)], get_project_settings())
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


def write_log(folder: Path, *pauses: float) -> None:
    """A log of a host that was promised five seconds, asked again after each of ``pauses``, over midnight."""
    log = RequestLog(folder / "log", 31)
    start = _MIDNIGHT - 12
    for number, pause in enumerate((0.0, *pauses)):
        start += pause
        known = {"status": 200, "host": "a.test", "ip": "192.0.2.1", "delay_seconds": 5.0}
        log.write(start + 0.25, attempt_line(start, start + 0.25, f"http://a.test/{number}", Reason.FETCHED, **known))
        start += 0.25
    log.close()


def test_kept_pauses_over_two_days_exit_with_0(audit: Audit, tmp_path: Path) -> None:
    """The day before is compressed by now; its last pause ends in today's file."""
    write_log(tmp_path, 5.1, 5.0, 5.2, 7.0)
    tidy(tmp_path / "log", "2023-11-15", 31)
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == [
        "requests-2023-11-14.jsonl.gz",
        "requests-2023-11-15.jsonl",
    ]

    ended = audit(tmp_path)

    assert ended.returncode == 0, ended.stderr
    assert audit("-s", f"CRAWL_DIR={tmp_path}").stdout == ended.stdout
    assert "5 requests to 1 host at 1 IP address" in ended.stdout
    assert "4 pauses; the closest: 5.000 s promised, 5.000 s kept (a.test)" in ended.stdout
    assert ended.stdout.endswith("0 violations\n")


def test_a_shortened_pause_across_midnight_is_named(audit: Audit, tmp_path: Path) -> None:
    """Exit status 1, the host, both times, the promise and the truth, also as JSON and from single files."""
    write_log(tmp_path, 5.1, 5.1, 3.5, 7.0)

    ended = audit(*sorted((tmp_path / "log").iterdir()))
    told = json.loads(audit("--json", tmp_path).stdout)

    assert ended.returncode == 1
    assert ended.stdout.count("VIOLATION") == 1
    assert (
        "VIOLATION host a.test: asked at 2023-11-15T00:00:02.450000Z, 3.500 s after the answer before had ended "
        "(2023-11-14T23:59:58.950000Z); promised 5.000 s; http://a.test/3" in ended.stdout
    )
    assert told["violations"] == [
        {
            "kind": "host", "name": "a.test", "ended": "2023-11-14T23:59:58.950000Z",
            "started": "2023-11-15T00:00:02.450000Z", "kept_seconds": 3.5, "promised_seconds": 5.0,
            "url": "http://a.test/3",
        }
    ]  # fmt: skip


def test_the_workers_of_a_crawl_are_judged_together(audit: Audit, tmp_path: Path) -> None:
    """One worker has the host from another too soon: each alone kept its word, both together did not."""
    write_log(tmp_path / "w1", 5.1, 5.0)
    shutil.copytree(tmp_path / "w1", tmp_path / "w2")
    for name, began in (("w1", ""), ("w2", "late")):
        write_facts(CrawlDir(tmp_path / name).run, {"cwd": "/", "settings": {"PACE_IP_SECONDS": "0.75"}, "life": began})
    for path in (tmp_path / "w2" / "log").iterdir():
        path.write_text(re.sub(r"(T\d\d:\d\d:\d\d)\.", r"\1.9", path.read_text()).replace('"host":"a.', '"host":"b.'))

    alone = [audit(tmp_path / name).returncode for name in ("w1", "w2")]
    told = json.loads(audit("--json", tmp_path).stdout)

    assert alone == [0, 0]
    assert (told["requests"], told["hosts"], told["ip_seconds"]) == (6, 2, 0.75)
    assert {found["kind"] for found in told["violations"]} == {"ip"}


@pytest.mark.parametrize(("pause", "violations"), [("0", 0), ("6", 1)])
def test_an_address_is_judged_by_the_crawls_own_settings(
    audit: Audit, tmp_path: Path, pause: str, violations: int
) -> None:
    """What the crawl was started with counts, not the default."""
    write_log(tmp_path, 5.1)
    run = {"cwd": "/", "settings": {"PACE_PER_IP": "1", "PACE_IP_SECONDS": pause}}
    write_facts(CrawlDir(tmp_path).run, run)

    told = json.loads(audit("--json", tmp_path).stdout)

    assert [found["kind"] for found in told["violations"]] == ["ip"] * violations


def _none(folder: Path) -> list[str | Path]:
    return ["-s", f"CRAWL_DIR={folder}"]


def _missing(folder: Path) -> list[str | Path]:
    return [folder / "requests-2023-11-14.jsonl"]


def _empty(folder: Path) -> list[str | Path]:
    return [folder]


def _no_requests(folder: Path) -> list[str | Path]:
    (folder / "requests-2023-11-14.jsonl").write_text('{"a": 1}\nnonsense\n')
    return [folder]


def _damaged(folder: Path) -> list[str | Path]:
    packed = gzip.compress(b"{}\n" * 1000)
    (folder / "requests-2023-11-14.jsonl.gz").write_bytes(packed[:-9])
    return [folder]


def _disorder(folder: Path) -> list[str | Path]:
    write_log(folder, 5.1, DAY_SECONDS, 1000, 1000)
    return sorted((folder / "log").iterdir(), reverse=True)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (_none, "There is no request log in"),
        (_missing, "cannot be read: No such file"),
        (_empty, "There is no request log in"),
        (_no_requests, "There is no request in"),
        (_damaged, "requests-2023-11-14.jsonl.gz is damaged"),
        (_disorder, "out of order"),
    ],
)
def test_what_cannot_be_judged_exits_with_2(
    audit: Audit, given: Callable[[Path], list[str | Path]], sentence: str, tmp_path: Path
) -> None:
    """One sentence, no traceback, and never the status of a crawl that was polite."""
    ended = audit(*given(tmp_path))

    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_has_an_example(audit: Audit) -> None:
    """What the command does, with a command line to copy."""
    ended = audit("-h")

    assert ended.returncode == 0
    assert "Example: scrapy audit crawls/web" in " ".join(ended.stdout.split())
