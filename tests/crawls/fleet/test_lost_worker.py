"""Workers of a fleet in Redis whose machines are gone with their disks: what they archived is missed, and fetched."""

from __future__ import annotations

import shutil
from collections.abc import Sequence, Set
from pathlib import Path

from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import Workers, workers
from tests.stores.redis_servers import redis_server
from tests.web.judge import judge_references, read_captures
from tests.web.running import synthetic_web

_NAMES = ("w1", "w2", "w3")


def _pages(*folders: Path) -> Set[str]:
    captures = read_captures(*(folder / "warc" for folder in folders))
    pages = {url: sum(statuses.values()) for url, statuses in captures.items() if not url.endswith("robots.txt")}
    assert set(pages.values()) == {1}
    return pages.keys()


def _lost_in_part(fleet: Workers, said: Sequence[str]) -> Set[str]:
    """A worker goes on that has lost a part of its archive, or was made anew under its name; what it had to fetch."""
    here = fleet.folder / "w1"
    before = _pages(here)
    for path in here.glob(f"**/{min((here / 'warc').iterdir()).name.removesuffix('.warc.gz')}*"):
        path.unlink()
    part = before - _pages(here)
    assert scrapy("verify", str(fleet.folder), *said).returncode == 1
    done = scrapy("recover", str(fleet.folder), "--lost", "w1", *said)
    assert (done.returncode, set(done.stdout.split())) == (0, part), done.stderr
    fleet.start("w1")
    fleet.wait()
    assert scrapy("verify", str(fleet.folder), *said).returncode == 0
    assert _pages(here) == before
    return part


def test_what_its_archive_held_is_fetched_again_and_nothing_else(tmp_path: Path) -> None:
    """``verify`` says what is missing; ``recover --lost`` queues it once every other archive is there.

    Nor does a folder that was given another name lose what Redis knows by the old one.
    """
    settings = {"SCOPE_MAX_URLS_PER_HOST": "8"}  # the last to join has some pages, too
    with (
        redis_server(tmp_path / "redis") as redis,
        synthetic_web(tmp_path / "web", "--profile", "broad", "--hosts", "12") as web,
        workers(web, tmp_path / "crawl", redis.url, settings) as fleet,
    ):
        fleet.start(*_NAMES)
        fleet.until_archiving(60.0, *_NAMES)
        fleet.wait()
        here, gone, gone_too = (fleet.folder / name for name in _NAMES)
        kept, all_pages = _pages(here), _pages(here, gone, gone_too)
        lost = all_pages - kept
        said = ("-s", f"STATE_URL={redis.url}")
        whole = scrapy("verify", str(fleet.folder), *said)
        assert (whole.returncode, "answered pages of the frontier" in whole.stdout) == (0, True), whole.stderr

        none = scrapy("recover", str(fleet.folder), "--lost", "w2", *said)
        assert (none.returncode, none.stdout, "Of w2 0 pages without any archive" in none.stderr) == (0, "", True)
        elsewhere = here.rename(tmp_path / "elsewhere")
        shutil.rmtree(gone)
        shutil.rmtree(gone_too)
        refused = scrapy("recover", str(fleet.folder), "--lost", "w2", *said)
        assert (refused.returncode, "The archives of w1, w3 are not in" in refused.stderr) == (2, True)
        elsewhere.rename(here)
        # A robots.txt like one that another worker had stored before is a revisit of that.
        of_the_lost = judge_references(here / "warc", gone / "warc").faults
        looked = scrapy("verify", str(fleet.folder), *said)
        assert (looked.returncode, "where the archives of w2, w3 are not" in looked.stderr) == (0, True)

        for count in (len(lost), 0):  # what waits in the frontier is lost no more
            done = scrapy("recover", str(fleet.folder), "--lost", "w2", "--lost", "w3", *said)
            if count:
                assert (done.returncode, set(done.stdout.split())) == (0, lost), done.stderr
            else:
                assert (done.returncode, "No worker 'w2'" in done.stderr) == (2, True)
        here.rename(fleet.folder / "w9")
        fleet.start("w9")
        assert fleet.ended("w9", 60.0) == 2
        assert "w9 is the folder of worker 'w1': give it that name again" in fleet.output("w9")
        (fleet.folder / "w9").rename(here)
        fleet.start("w1")
        fleet.wait()
        assert scrapy("verify", str(fleet.folder), *said).returncode == 0
        now = _pages(here)
        dangling = judge_references(here / "warc", gone / "warc").faults

        part = _lost_in_part(fleet, said)

    assert len(part) > 5
    assert len(lost) > 5
    assert len(kept) > 5
    assert now == all_pages
    assert set(dangling) <= set(of_the_lost)  # what was fetched again is there itself, not as the lost archive had it
