"""crawl.toml: what a crawl is, in a file that people and programs both read and write."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from crawlerproject import settings as ours
from crawlerproject.config.crawl_file import (
    DECISIVE,
    CrawlFile,
    accepted_names,
    adopt_crawl_file,
    apply,
    crawl_file_of,
    differences,
    keeping_crawl_file,
    kept_settings,
    read_crawl_file,
    refuse_differences,
    refuse_unknown,
    write_crawl_file,
)
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.settings import OURS
from crawlerproject.stores.crawl_dir import CrawlDir, open_lock


def settings(**given: object) -> Settings:
    """The project's settings, with these from a command line."""
    made = Settings()
    made.setmodule(ours, priority="project")
    for name, value in given.items():
        made.set(name, value, "cmdline")
    return made


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """URLs as a list, a path as it is; numbers, lists and texts of settings; for its owner's eyes alone."""
    wanted = settings(SCOPE_MAX_DEPTH="3", SKIP_EXTENSIONS="pdf,zip", CRAWLER_CONTACT="a@example.org", RENDER="never")
    crawl = CrawlFile("http://a.test/,http://b.test/", "host", kept_settings(wanted))

    write_crawl_file(tmp_path, crawl)

    assert read_crawl_file(tmp_path) == crawl
    assert crawl.settings == {
        "SCOPE_MAX_DEPTH": 3, "SKIP_EXTENSIONS": ["pdf", "zip"], "CRAWLER_CONTACT": "a@example.org", "RENDER": "never",
    }  # fmt: skip
    assert CrawlDir(tmp_path).crawl_file.stat().st_mode & 0o777 == 0o600


def test_a_change_keeps_what_the_operator_wrote(tmp_path: Path) -> None:
    """Comments, order and the settings that stay."""
    text = 'scope = "host" # only this one\nseeds = "seeds.txt"\n\n[settings]\n# slowly\nPACE_MIN_SECONDS = 20\n'
    CrawlDir(tmp_path).crawl_file.write_text(text)
    crawl = read_crawl_file(tmp_path)
    assert crawl is not None
    crawl.settings["SCOPE_MAX_DEPTH"] = 4

    write_crawl_file(tmp_path, crawl)

    assert CrawlDir(tmp_path).crawl_file.read_text() == text + "SCOPE_MAX_DEPTH = 4\n"


def test_the_file_stands_between_settings_py_and_the_command_line() -> None:
    """It wins over the project's, a spider's and the command line's win over it."""
    file = CrawlFile(settings={"SCOPE_MAX_DEPTH": 4, "RENDER": "never"})
    made = settings(RENDER="always")

    apply(file, made)

    assert made.getint("SCOPE_MAX_DEPTH") == 4
    assert made["RENDER"] == "always"


def test_a_start_that_differs_is_refused_with_both_values_and_the_word() -> None:
    """Only what decides which pages there are: a pace may change from start to start."""
    file = CrawlFile("http://a.test/", "host", {"SCOPE_MAX_DEPTH": 4})
    made = settings(SCOPE_MAX_DEPTH="5", PACE_MIN_SECONDS="9")
    apply(file, made)

    found = differences(file, "any", made)

    with pytest.raises(OperatorError) as refused:
        refuse_differences(Path("crawls/web"), found, "")
    assert "scope is 'host' in this crawl, 'any' was given" in str(refused.value)
    assert "SCOPE_MAX_DEPTH is 4 in this crawl, 5 was given" in str(refused.value)
    assert "-a accept=scope,SCOPE_MAX_DEPTH" in str(refused.value)
    with pytest.raises(OperatorError, match="SCOPE_MAX_DEPTH"):
        refuse_differences(Path("crawls/web"), found, "scope")
    refuse_differences(Path("crawls/web"), found, "scope,SCOPE_MAX_DEPTH")
    refuse_differences(Path("crawls/web"), found, "all")
    assert differences(file, None, settings(SCOPE_MAX_DEPTH="4")) == []


def test_the_same_in_other_words_is_no_difference() -> None:
    """Strings of a command line, lists in another order."""
    file = CrawlFile(settings={"SKIP_EXTENSIONS": ["zip", "pdf"], "SITEMAPS": False, "FETCH_MAX_BYTES": 1000})

    same = settings(SKIP_EXTENSIONS="pdf,zip", SITEMAPS="False", FETCH_MAX_BYTES="1000")

    assert differences(file, None, same) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scope = host\n", "is not TOML"),
        ("speed = 3\n", "has 'speed'; it may hold seeds, scope, include"),
        ("[settings]\nPACE_MIN_SECOND = 3\n", "PACE_MIN_SECONDS was probably meant"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    """With its path and what to mend."""
    CrawlDir(tmp_path).crawl_file.write_text(text)

    with pytest.raises(OperatorError, match=said):
        read_crawl_file(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("PACE_MIN_SECOND", "PACE_MIN_SECONDS was probably meant"),
        ("RENDERS", "RENDER was probably meant"),
        ("scope_max_depth", "SCOPE_MAX_DEPTH was probably meant"),
        ("FETCH_WITH_CARE", r"docs/settings\.md lists them all"),
    ],
)
def test_a_name_that_looks_like_ours_and_is_not_is_refused(name: str, said: str) -> None:
    """With the nearest one."""
    with pytest.raises(OperatorError, match=said):
        refuse_unknown([name], "The command line")


def test_names_of_others_pass() -> None:
    """Every setting of ours, of Scrapy's, and what neither knows nor resembles."""
    names = [*OURS, "LOG_LEVEL", "RETRY_TIMES", "ROBOTSTXT_OBEY", "MYEXT_ENABLED", "JOBDIR"]
    refuse: Any = refuse_unknown

    assert refuse(names, "The command line") is None


def test_accept_accepts_only_what_can_be_accepted() -> None:
    """A misspelt word would accept nothing without a sound."""
    assert accepted_names("scope, SCOPE_MAX_DEPTH") == {"scope", "SCOPE_MAX_DEPTH"}
    assert accepted_names("") == frozenset()
    with pytest.raises(OperatorError, match="accept=sceop accepts nothing"):
        accepted_names("sceop")


def test_what_decides_is_ours() -> None:
    """Each name of the table is a setting, every bound of the scope is among them, and the docs list them all."""
    documented = (Path(__file__).resolve().parents[2] / "docs" / "running.md").read_text()

    assert set(DECISIVE) <= set(OURS)
    assert {name for name in OURS if name.startswith("SCOPE_")} <= set(DECISIVE)
    assert all(f"`{name}`" in documented for name in DECISIVE)


def test_several_workers_have_one_file(tmp_path: Path) -> None:
    """The crawl's; that of a worker counts as long as there is no other, as an earlier version left it."""
    given = settings(CRAWL_DIR=str(tmp_path), STATE_URL="redis://localhost/0", FLEET_WORKER="w-1")
    crawl, worker = CrawlDir(tmp_path), CrawlDir(tmp_path / "w-1")
    worker.mkdir()
    adopt_crawl_file(crawl, worker)
    assert crawl_file_of(given) is None
    write_crawl_file(worker, CrawlFile("http://a.test/", "host"))
    assert crawl_file_of(given) == CrawlFile("http://a.test/", "host")

    adopt_crawl_file(crawl, worker)
    write_crawl_file(worker, CrawlFile("http://b.test/", "any"))
    adopt_crawl_file(crawl, worker)

    assert crawl_file_of(given) == read_crawl_file(crawl) == CrawlFile("http://a.test/", "host")
    assert crawl.crawl_file.stat().st_mode & 0o777 == 0o600


def test_workers_that_start_together_keep_the_file_one_after_the_other(tmp_path: Path) -> None:
    """They write beside it first, under one name."""
    crawl = CrawlDir(tmp_path)
    with keeping_crawl_file(crawl):
        other = open_lock(crawl.crawl_file_lock)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it is let go
    os.close(other)
    with pytest.raises(StorageError, match="cannot write"), keeping_crawl_file(CrawlDir(tmp_path / "nowhere")):
        raise AssertionError
