"""The lists of hosts that are never asked: added to, listed and taken off by ``scrapy never``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawlerproject.commands.never import add
from crawlerproject.errors import OperatorError
from crawlerproject.stores.operator_files.user_settings import user_path
from tests.commands.running import Done, scrapy

NOW = datetime(2026, 1, 31, tzinfo=UTC)
WHY = ("--why", "asked by their webmaster")


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The project's list, and the place of the operator's own, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    shipped = tmp_path / "NeverCrawl.txt"
    shipped.write_text("# shipped\nshipped.example\n")
    return shipped, Path(user_path("~/.config/polite-crawler/NeverCrawl.txt"))


def never(shipped: Path, *arguments: str) -> Done:
    """The command, with no crawl around it."""
    return scrapy("never", *arguments, "-s", f"NEVERCRAWL_FILE={shipped}", "-s", f"CRAWL_DIR={shipped.parent}/none")


@pytest.mark.parametrize("suffix", ["com", "COM.", "*.co.uk", "github.io", "blogspot.com", "xn--p1ai"])
def test_a_public_suffix_is_refused(tmp_path: Path, suffix: str) -> None:
    """It would exclude every site below it; who means that says so."""
    path = tmp_path / "never.txt"

    with pytest.raises(OperatorError, match=r"is a suffix under which others have their domains.* --whole-suffix"):
        add(path, suffix, "x", NOW)

    assert not path.exists()
    assert add(path, suffix, "x", NOW, whole_suffix=True)[1:] == (1, True)


def test_a_list_in_utf_16_is_not_mixed_with_utf_8(tmp_path: Path) -> None:
    """Crawls read it; what is added here could not be read."""
    path = tmp_path / "never.txt"
    path.write_text("a.example\n", "utf-16")

    assert add(path, "a.example", "x", NOW) == ("a.example", 1, False)
    with pytest.raises(OperatorError, match=r"never\.txt is in UTF-16 or packed, .* it must be UTF-8"):
        add(path, "b.example", "x", NOW)


@pytest.mark.parametrize("host", ["example.com", "www.example.co.uk", "me.github.io", "192.0.2.7", "localhost"])
def test_what_has_an_owner_is_taken(tmp_path: Path, host: str) -> None:
    """Domains, names below them, users of a hoster, addresses, names of one's own network."""
    assert add(tmp_path / "never.txt", host, "x", NOW) == (f"{host}  # x, 2026-01-31", 1, True)


def test_the_operators_own_list_is_written_and_the_shipped_one_left(lists: tuple[Path, Path]) -> None:
    """So that no upgrade meets a changed file; both hold."""
    shipped, own = lists
    before = shipped.read_text()

    done = never(shipped, "asked.example", *WHY)

    assert done.returncode == 0, done.stderr
    assert f"Added to {own}, line 1: asked.example  # asked by their webmaster" in done.stdout
    assert shipped.read_text() == before
    listed = json.loads(never(shipped, "--list", "--json").stdout)
    assert [(row["domain"], row["path"], row["line"]) for row in listed] == [
        ("shipped.example", str(shipped), 2), ("asked.example", str(own), 1),
    ]  # fmt: skip
    text = never(shipped, "--list")
    assert f"{own}:1: asked.example  # asked by their webmaster" in text.stdout
    assert "2 entries in" in text.stderr


def test_a_line_that_is_taken_off_stays_as_a_comment(lists: tuple[Path, Path]) -> None:
    """With who asked for it and when, in whichever list it stands; others keep their lines."""
    shipped, own = lists
    for host in ("a.example", "b.example"):
        assert never(shipped, host, *WHY).returncode == 0

    done = never(shipped, "a.example", "--remove", "--why", "they asked us back")
    gone = never(shipped, "a.example", "--remove", "--why", "again")
    below = never(shipped, "www.b.example", "--remove", "--why", "only this one")
    theirs = never(shipped, "shipped.example", "--remove", "--why", "ours now")

    assert done.returncode == 0, done.stderr
    assert f"Taken off {own}, line 1: a.example" in done.stdout
    first, second = own.read_text().splitlines()
    assert first.startswith("# a.example  # asked by their webmaster, ")
    assert "; taken off: they asked us back, 20" in first
    assert second.startswith("b.example  # ")
    assert (gone.returncode, "a.example is on no list" in gone.stderr) == (2, True)
    assert (below.returncode, f"line 2 of {own} excludes b.example and all below it" in below.stderr) == (2, True)
    assert theirs.returncode == 0
    assert [row["domain"] for row in json.loads(never(shipped, "--list", "--json").stdout)] == ["b.example"]


def test_a_list_that_is_set_by_hand_must_be_there(lists: tuple[Path, Path]) -> None:
    """The default place may be empty; a path that somebody gave is a promise."""
    shipped, own = lists

    assert not own.exists()
    assert never(shipped, "--list").returncode == 0
    refused = scrapy("fetch", "http://a.example/", "-s", f"NEVERCRAWL_FILE={shipped}", "-s", "NEVERCRAWL_USER_FILE=/no")
    assert (refused.returncode, "NEVERCRAWL_USER_FILE /no cannot be read" in refused.stderr) == (2, True)
