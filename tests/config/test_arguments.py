"""Patterns and limits as ``-a`` and a spider's class give them, and how crawl.toml keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlerproject.config.arguments import Arguments, arguments_of, refuse_unknown_arguments
from crawlerproject.config.crawl_file import CrawlFile, differences, read_crawl_file, write_crawl_file
from crawlerproject.errors import OperatorError
from crawlerproject.settings import OURS
from crawlerproject.stores.crawl_dir import CrawlDir


class OfAClass:
    """A spider's class that says so itself."""

    max_pages = 100
    exclude = "*/tag/*"
    maxpages = 3  # its own, whatever it is


def test_arguments_are_taken_from_the_command_line_and_the_class() -> None:
    """The command line wins; what is not ours stays for the spider."""
    given = {"max_pages": "5", "include": "/a/* /b/*", "topic": "x", "_job": "7", "maxpages": "4"}

    arguments = arguments_of(given, OfAClass)

    assert arguments == Arguments(["/a/*", "/b/*"], ["*/tag/*"], {"max_pages": "5"})
    assert given == {"topic": "x", "_job": "7", "maxpages": "4"}
    assert arguments_of({}) == Arguments()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"maxpages": "4"}, "max_pages was probably meant"),
        ({"max_pages_per_hots": "4"}, "max_pages_per_host was probably meant"),
        ({"excludes": "*x*"}, "exclude was probably meant"),
        ({"max_bytes": "4 parsecs"}, "max_bytes is '4 parsecs'"),
        ({"include": "x"}, "-a include=: the pattern 'x' would match no URL"),
    ],
)
def test_what_would_silently_not_hold_is_refused(given: dict[str, str], said: str) -> None:
    """Nearly one of ours, or of no meaning."""
    with pytest.raises(OperatorError, match=said):
        arguments_of(given)


def test_the_file_keeps_patterns_and_limits(tmp_path: Path) -> None:
    """Written, read, changed by hand and by a start; a limit of 0 goes away, comments stay."""
    file = CrawlFile("seeds.txt", "path", {}, ["/a/*"], [], {"max_pages": "7"})
    write_crawl_file(tmp_path, file)
    assert read_crawl_file(tmp_path) == file
    path = CrawlDir(tmp_path).crawl_file
    path.write_text(
        "# ours\n" + path.read_text().replace('max_pages = "7"', 'max_time = "8h" # a night\nmax_pages = 7')
    )

    again = read_crawl_file(tmp_path)
    assert again is not None
    said = again.bound({"max_pages": "0", "max_time": "480min", "max_bytes": "1GB"})
    write_crawl_file(tmp_path, again)

    assert said == ["max_pages is 0 (7 before)", "max_bytes is 1GB (0 before)"]  # eight hours are eight hours
    text = path.read_text()
    assert "# ours" in text
    assert "max_pages" not in text
    kept = read_crawl_file(tmp_path)
    assert kept is not None
    assert kept.limits == {"max_time": "480min", "max_bytes": "1GB"}


@pytest.mark.parametrize("line", ['max_pages = "many"', 'exclude = ["calendar"]'])
def test_a_file_that_cannot_hold_is_one_sentence(tmp_path: Path, line: str) -> None:
    """As on the command line."""
    CrawlDir(tmp_path).crawl_file.write_text(line + "\n")

    with pytest.raises(OperatorError):
        read_crawl_file(tmp_path)


def test_patterns_are_what_a_crawl_is_and_limits_are_not() -> None:
    """A start without patterns goes on with those that are kept."""
    file, settings = CrawlFile(exclude=["*.pdf"], limits={"max_pages": 5}), Settings(OURS)

    assert differences(file, None, settings, Arguments(limits={"max_pages": "9"})) == []
    (found,) = differences(file, None, settings, Arguments(exclude=["*.pdf", "*.zip"]))
    assert str(found) == "exclude is '*.pdf' in this crawl, '*.pdf *.zip' was given"


def test_what_no_part_of_the_crawler_reads_is_refused() -> None:
    """But for what scrapyd gives each job; the sentence lists what there is."""
    refuse_unknown_arguments(["seeds", "scope", "max_pages", "_job"], "web")
    refuse_unknown_arguments(["plan", "depth", "exclude"], "plan", ("plan", "depth"))

    with pytest.raises(OperatorError, match="-a depth= is no argument of the spider web; it has seeds, scope"):
        refuse_unknown_arguments(["seeds", "depth"], "web")
