"""A crawl's folder remembers what the crawl is: starts that differ are refused, or accepted by a word."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir
from tests.hostile.arena import SETTINGS, Arena, Asked, arena, page
from tests.web import zygote
from tests.web.running import IDENTITY


def run(
    web: Arena, *arguments: str, command: str = "crawl", **settings: str | None
) -> subprocess.CompletedProcess[str]:
    """A command on the one folder of a test."""
    given = {
        **SETTINGS, **IDENTITY, "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "CRAWL_DIR": str(web.folder / "crawl"), **settings,
    }  # fmt: skip
    options = [part for name, value in given.items() if value is not None for part in ("-s", f"{name}={value}")]
    return zygote.run([sys.executable, "-m", "scrapy", command, *arguments, *options], env=zygote.direct(), timeout=100)


def sites(web: Arena) -> None:
    """Two sites that link to each other, and a third."""

    def make(asked: Asked) -> bytes | None:
        other = "two.test" if asked.host == "one.test" else "one.test"
        return page("/a", web.url(other), text=f"{asked.host}{asked.path}") if asked.path in ("/", "/a") else None

    for name in ("one.test", "two.test", "three.test"):
        web.site(name, make)


def test_a_continued_crawl_keeps_its_scope_and_its_settings(tmp_path: Path) -> None:
    """Begun with scope=host and a depth, stopped by its depth: without either it goes on as it was, off to nowhere."""
    with arena(tmp_path) as web:
        sites(web)
        first = run(web, "web", "-a", f"seeds={web.url('one.test')}", "-a", "scope=host", SCOPE_MAX_DEPTH="3")
        again = run(web, "web")  # not even its seeds
        status = json.loads(run(web, "--json", command="status").stdout)
        said = run(web, command="status").stdout

    assert {name: status["totals"][name] for name in ("pages", "errors")} == {"pages": 2, "errors": 0}
    assert status["totals"]["bytes"] > 400
    assert (status["pages"], status["bytes"]) == (0, 0)
    assert re.search(r"^Done      2 pages, .*, 0 errors since 20\d\d-\d\d-\d\d \d\d:\d\d UTC$", said, re.MULTILINE)
    assert "          0 pages, 0 B, 0 errors since the last start" in said
    assert first.returncode == 0, first.stderr[-2000:]
    assert "A new crawl in" in first.stderr
    assert again.returncode == 0, again.stderr[-2000:]
    assert "Continues the crawl in" in again.stderr
    assert "1 seed, none of them new" in again.stderr
    assert "Nothing was left to fetch" in again.stderr
    assert "-a mode=recrawl" in again.stderr
    assert sorted(web.paths("one.test")) == ["/", "/a"]
    assert web.paths("two.test") == []
    assert "SCOPE_MAX_DEPTH = 3" in CrawlDir(web.folder / "crawl").crawl_file.read_text()


def test_a_file_that_was_prepared_by_hand_takes_in_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the operator's own settings and a command line: nothing was begun otherwise. Each later start goes on so."""
    own = tmp_path / "config" / "polite-crawler" / "settings.toml"
    own.parent.mkdir(parents=True)
    own.write_text("SCOPE_MAX_DEPTH = 3\nSITEMAPS = false\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with arena(tmp_path) as web:
        sites(web)
        file = CrawlDir(web.folder / "crawl").crawl_file
        file.parent.mkdir()
        file.write_text(f'seeds = ["{web.url("one.test")}"]\n# mine\n')
        first = run(web, "web", "-a", "scope=host", SITEMAPS="True")
        again = run(web, "web")
        own.write_text("SCOPE_MAX_DEPTH = 4\nSCOPE_MAX_URL_LENGTH = 1000\n")
        other = run(web, "web")

    assert (first.returncode, again.returncode) == (0, 0), first.stderr[-2000:] + again.stderr[-2000:]
    kept = file.read_text()
    assert all(line in kept for line in ('scope = "host"', "SCOPE_MAX_DEPTH = 3", "SITEMAPS = true"))
    assert web.paths("two.test") == []
    assert other.returncode == 2
    assert "SCOPE_MAX_DEPTH" not in other.stderr  # crawl.toml has it
    assert "1000 was given. Write SCOPE_MAX_URL_LENGTH as it was into crawl.toml to go on as before" in other.stderr


def test_a_start_that_differs_is_refused_until_it_is_accepted(tmp_path: Path) -> None:
    """Scope, seeds and a setting that decides; nothing is asked, nothing is changed; then each by its word."""
    with arena(tmp_path) as web:
        sites(web)
        one, three = web.url("one.test"), web.url("three.test")
        assert run(web, "web", "-a", f"seeds={one}", "-a", "scope=host").returncode == 0
        asked = len(web.visits)

        wider = run(web, "web", "-a", "scope=any")
        deeper = run(web, "web", SCOPE_MAX_DEPTH="9")
        joined = run(web, "web", "-a", f"seeds={three}")

        assert [one.returncode for one in (wider, deeper, joined)] == [2, 2, 2]
        assert "scope is 'host' in this crawl, 'any' was given" in wider.stderr
        assert "SCOPE_MAX_DEPTH is 20 in this crawl, 9 was given" in deeper.stderr
        assert "-a accept=SCOPE_MAX_DEPTH" in deeper.stderr
        assert f"seeds is '{one}' in this crawl, '{three}' was given" in joined.stderr
        assert "Traceback" not in wider.stderr + deeper.stderr + joined.stderr
        assert len(web.visits) == asked

        accepted = run(web, "web", "-a", f"seeds={three}", "-a", "accept=seeds,SCOPE_MAX_DEPTH", SCOPE_MAX_DEPTH="9")
        plain = run(web, "web")

    assert accepted.returncode == 0, accepted.stderr[-2000:]
    assert "1 seed, 1 of them new" in accepted.stderr
    assert web.paths("three.test")
    assert web.paths("two.test") == []  # still scope=host, of both seeds
    assert plain.returncode == 0, plain.stderr[-2000:]
    kept = CrawlDir(web.folder / "crawl").crawl_file.read_text()
    assert "SCOPE_MAX_DEPTH = 9" in kept
    assert three in kept
    assert one in kept


def test_a_start_that_fetched_nothing_binds_no_setting(tmp_path: Path) -> None:
    """Depth and scope were mistyped, and no page came: the next start's hold, and it is said; once one came, not."""
    with arena(tmp_path) as web:
        sites(web)
        one, listed = web.url("one.test"), tmp_path / "never.txt"
        listed.write_text("one.test\n")
        first = run(
            web, "web", "-a", f"seeds={one}", "-a", "scope=path", SCOPE_MAX_DEPTH="0", NEVERCRAWL_FILE=str(listed)
        )
        listed.write_text("")
        mended = run(
            web, "web", "-a", f"seeds={one}", "-a", "scope=host", SCOPE_MAX_DEPTH="3", NEVERCRAWL_FILE=str(listed)
        )
        other = run(web, "web", SCOPE_MAX_DEPTH="4")

    assert first.returncode == 69, first.stderr[-2000:]
    assert mended.returncode == 0, mended.stderr[-2000:]
    assert "From now on scope is 'host' ('path' before)" in mended.stderr
    assert "From now on SCOPE_MAX_DEPTH is 3 (0 before)" in mended.stderr
    assert sorted(web.paths("one.test")) == ["/", "/a"]
    assert (other.returncode, web.paths("two.test")) == (2, [])
    assert "SCOPE_MAX_DEPTH is 3 in this crawl, 4 was given" in other.stderr


def test_seeds_that_were_refused_at_the_gate_are_no_new_ones(tmp_path: Path) -> None:
    """The same seeds again, one of which was never queued, are the same seeds."""
    with arena(tmp_path) as web:
        sites(web)
        listed = tmp_path / "never.txt"
        listed.write_text("two.test\n")
        seeds = f"seeds={web.url('one.test')},{web.url('two.test')}"

        first = run(web, "web", "-a", seeds, "-a", "scope=host", NEVERCRAWL_FILE=str(listed))
        again = run(web, "web", "-a", seeds, NEVERCRAWL_FILE=str(listed))

    assert (first.returncode, again.returncode) == (0, 0), again.stderr[-2000:]
    assert "none of them new" in again.stderr


def test_a_folder_of_an_earlier_version_keeps_its_scope(tmp_path: Path) -> None:
    """It has no crawl.toml: the frontier knows the scope, and the start writes the file."""
    with arena(tmp_path) as web:
        sites(web)
        seeds = f"seeds={web.url('one.test')}"
        assert run(web, "web", "-a", seeds, "-a", "scope=host").returncode == 0
        CrawlDir(web.folder / "crawl").crawl_file.unlink()

        wider = run(web, "web", "-a", seeds, "-a", "scope=any")
        again = run(web, "web", "-a", seeds)

    assert wider.returncode == 2
    assert "scope is 'host' in this crawl, 'any' was given" in wider.stderr
    assert again.returncode == 0, again.stderr[-2000:]
    assert 'scope = "host"' in CrawlDir(web.folder / "crawl").crawl_file.read_text()


@pytest.mark.parametrize("name", ["PACE_MIN_SECOND", "SCOPE_MAX_DEPHT"])
def test_a_misspelt_setting_is_refused(tmp_path: Path, name: str) -> None:
    """With the one that was probably meant, before anything is asked."""
    with arena(tmp_path) as web:
        sites(web)

        refused = run(web, "web", "-a", f"seeds={web.url('one.test')}", **{name: "3"})

    assert refused.returncode == 2
    assert f"sets {name}, which is no setting" in refused.stderr
    assert web.visits == []
