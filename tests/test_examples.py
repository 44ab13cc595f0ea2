"""The examples of the tutorial and the how-to pages: each Python block runs, each command has these options."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from scrapy.commands import ScrapyCommand
from scrapy.settings import Settings

from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.rules.archive.warc_records import Context
from tests.commands.running import archive_of
from tests.warc_samples import exchange
from tests.web import zygote
from tests.web.running import PROJECT

PAGES = [PROJECT / "docs" / "tutorial.md", *sorted((PROJECT / "docs" / "howto").glob("*.md"))]
DEMO = "crawls/demo"  # the crawl that the pages speak of
URL = "http://a.test/first"


def blocks(page: Path, language: str) -> list[str]:
    """What stands between the fences of one language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", page.read_text())


SNIPPETS = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python"))
]
LINES = [line for page in PAGES for block in blocks(page, "console") for line in block.splitlines()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a processed crawl where the pages say that it is, and its request log."""
    folder = tmp_path_factory.mktemp("checkout")
    crawl = folder / DEMO
    made = archive_of(crawl)
    made.write(
        exchange(b"<title>First</title><p>Some words", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
        Context(URL),
    )
    made.close()
    (warc,) = (crawl / "warc").iterdir()
    assert process_warc(warc, crawl / "processed", ExtractOptions()).problem == ""
    (crawl / "log").mkdir(exist_ok=True)
    (crawl / "log" / "requests-2026-11-28.jsonl").write_text(json.dumps({"reason": "fetched", "url": URL}) + "\n")
    return folder


@pytest.mark.parametrize("code", SNIPPETS)
def test_a_snippet_runs(code: str, checkout: Path) -> None:
    """As it stands there, on a crawl; what it prints is about that crawl, unless it defines a spider."""
    for library in re.findall(r"^(?:import|from) (pandas|polars|datasets)", code, flags=re.MULTILINE):
        pytest.importorskip(library)
    printed = io.StringIO()
    with contextlib.chdir(checkout), contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), {"__name__": "example"})

    assert printed.getvalue().strip() or "Spider)" in code


def test_the_tutorials_spider_yields_titles(checkout: Path) -> None:
    """Over an archive, which costs no crawl."""
    (spider,) = (code for code in blocks(PAGES[0], "python") if "class TitlesSpider" in code)
    (checkout / "own").mkdir()
    (checkout / "own" / "__init__.py").write_text(spider)
    command = [
        sys.executable,
        "-m",
        "scrapy",
        "reparse",
        "titles",
        str(checkout / DEMO),
        "-O",
        str(checkout / "t.jsonl"),
    ]
    given = {"PYTHONPATH": str(checkout)}
    done = zygote.run([*command, "-s", "SPIDER_MODULES=own"], env=given, timeout=60)

    assert done.returncode == 0, done.stderr
    assert json.loads((checkout / "t.jsonl").read_text()) == {"url": URL, "title": "First"}


def command_of(name: str) -> ScrapyCommand:
    """Ours, or Scrapy's of that name."""
    ours = (PROJECT / "crawlerproject" / "commands" / f"{name}.py").exists()
    module = importlib.import_module(f"{'crawlerproject' if ours else 'scrapy'}.commands.{name}")
    found: ScrapyCommand = module.Command()
    found.settings = Settings()
    return found


@pytest.mark.parametrize("line", [line for line in LINES if re.search(r"\b(scrapy|polite-crawler) [a-z]", line)])
def test_a_command_line_is_understood(line: str) -> None:
    """The command exists and has each of the options."""
    words = shlex.split(line, comments=True)
    start = next(at for at, word in enumerate(words) if word in ("scrapy", "polite-crawler"))
    name, *given = words[start + 1 :]
    parser = argparse.ArgumentParser(conflict_handler="resolve", exit_on_error=False)
    command_of(name).add_options(parser)
    _, left = parser.parse_known_args(given)

    assert [word for word in left if word.startswith("-")] == []


@pytest.mark.parametrize(
    "word", sorted({word for line in LINES for word in re.findall(r"(?:^\$|&&) make ([\w-]+)", line)})
)
def test_a_make_target_exists(word: str) -> None:
    """As the pages name it."""
    assert re.search(rf"(?m)^{word}:", (PROJECT / "Makefile").read_text())


def test_the_pages_have_examples() -> None:
    """So that the tests above are of something."""
    assert len(SNIPPETS) >= 8
    assert len(LINES) >= 15
