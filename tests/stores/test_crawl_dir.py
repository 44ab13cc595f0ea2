"""The names in a crawl's folder, which no other module spells, its lock, and what is there."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores import crawl_dir
from crawlerproject.stores.crawl_dir import (
    FORMATS,
    CrawlDir,
    _Part,
    holds_database,
    read_facts,
    stamp_formats,
    take_lock,
    write_facts,
)

# Another process that holds a folder's lock until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from crawlerproject.stores.crawl_dir import take_lock
lock = take_lock(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(60)
"""

SOURCE = Path(crawl_dir.__file__).parents[1]
PROJECT = SOURCE.parent
NAMES = {name for part in vars(CrawlDir).values() if isinstance(part, _Part) for name in part.names} | {"CURRENT"}
# These are recognised wherever they stand, the others as a part of a path.
UNMISTAKABLE = {name for name in NAMES if "." in name or name == "CURRENT"} - {"status.json"}
JOINS = {"Path", "CrawlDir", "PurePath", "joinpath", "with_name", "glob", "rglob"}


def constants(node: ast.AST) -> Iterator[str]:
    """The string constants of an expression, those in f-strings included."""
    yield from (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


def spelled(source: str) -> set[str]:
    """Names of a crawl's folder that a module spells."""
    tree = ast.parse(source)
    found = UNMISTAKABLE & set(constants(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant):
            found |= NAMES & set(constants(node.right))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in JOINS:
            found |= {name for one in node.args if isinstance(one, ast.Constant) for name in constants(one)} & NAMES
        elif isinstance(node, ast.JoinedStr) and next(constants(node), "").startswith("crawls/"):
            found.add("crawls/")
    return found


def test_no_other_module_spells_a_name() -> None:
    """A folder that is renamed is renamed in one line."""
    files = [path for path in SOURCE.rglob("*.py") if path != Path(crawl_dir.__file__)]
    assert {str(path): found for path in files if (found := spelled(path.read_text()))} == {}


@pytest.mark.parametrize(
    "line",
    [
        'x = folder / "warc"',
        'Path(a, "log")',
        'RUN = "run.json"',
        'f"crawls/{name}"',
        'a.glob("frontier")',
        "'CURRENT'",
    ],
)
def test_the_reader_of_names_sees_every_form(line: str) -> None:
    """The check above rests on it."""
    assert spelled(line)


def test_its_parts_are_where_they_always_were(tmp_path: Path) -> None:
    """Folders of earlier versions go on working."""
    folder = CrawlDir(tmp_path)
    assert folder == tmp_path
    assert folder.frontier == tmp_path / "frontier"
    assert folder.parquet == tmp_path / "index" / "parquet"
    assert folder.robots_copies == tmp_path / "log" / "robots"
    assert folder.ranked_pages == tmp_path / "processed" / "rank" / "pages.parquet"
    assert type(folder.log) is type(Path())


def test_it_knows_what_is_there(tmp_path: Path) -> None:
    """A frontier, be it damaged; WARC files, open and closed, in the order of writing."""
    folder = CrawlDir(tmp_path / "crawl")
    assert not folder.has_frontier()
    folder.make()
    assert {path.name for path in folder.iterdir()} == {"frontier", "warc", "index", "log"}
    assert not folder.has_frontier()
    assert not folder.has_archive()

    (folder.frontier / "CURRENT").touch()
    for name in ("b.warc.gz", "a.warc.gz", "c.warc.gz.open", "notes.txt"):
        (folder.warc / name).touch()
    assert folder.has_frontier()
    assert holds_database(folder.frontier)
    assert folder.has_archive()
    assert [path.name for path in folder.closed_warcs()] == ["a.warc.gz", "b.warc.gz"]
    assert [path.name for path in folder.open_warcs()] == ["c.warc.gz.open"]


def test_the_folders_of_workers(tmp_path: Path) -> None:
    """Each in which one was started, by name; logs of processes and other folders are none."""
    for name in ("two", "one"):
        (tmp_path / name).mkdir()
        write_facts(CrawlDir(tmp_path / name).run, {})
    (tmp_path / "log").mkdir()
    assert [folder.name for folder in CrawlDir(tmp_path).started_below()] == ["one", "two"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """One sentence says which, and what to set."""
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match=r"file/crawl cannot be made \(Not a directory\); set CRAWL_DIR"):
        CrawlDir(tmp_path / "file" / "crawl").make()
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "warc").symlink_to(tmp_path)
    with pytest.raises(OperatorError, match="leads out of the crawl's folder"):
        CrawlDir(tmp_path / "crawl").make()


def test_a_status_is_believed_only_while_its_process_lives(tmp_path: Path) -> None:
    """Not ended, its process there, and the folder's lock held: all three. A reader disturbs no lock."""
    folder = CrawlDir(tmp_path)
    write_facts(folder.status, {"pid": os.getpid(), "time": 0.0})
    status = read_facts(folder.status)
    assert not folder.running(status)
    lock = take_lock(tmp_path)

    assert folder.running(status)
    assert not folder.running({**status, "ended": 1.0})
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
        assert not folder.running({**status, "pid": gone.pid})
    os.close(lock)
    assert not folder.running(status)
    os.close(take_lock(tmp_path))


def test_a_killed_process_does_not_run(tmp_path: Path) -> None:
    """At once, although its parent has not taken note of its death (a zombie has a process id)."""
    folder = CrawlDir(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], cwd=PROJECT, stdout=subprocess.PIPE) as crawl:
        assert crawl.stdout is not None
        assert crawl.stdout.readline() == b"locked\n"
        status = {"pid": crawl.pid, "time": 0.0}
        assert folder.running(status)
        crawl.kill()
        os.waitid(os.P_PID, crawl.pid, os.WEXITED | os.WNOWAIT)  # dead, and still a zombie
        assert not folder.running(status)


def test_facts_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    """Missing, torn, or not an object."""
    path = CrawlDir(tmp_path).status
    assert read_facts(path) == {}
    for text in ("{", "[1]"):
        path.write_text(text)
        assert read_facts(path) == {}
    write_facts(path, {"pid": 1})
    assert read_facts(path) == {"pid": 1}
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("part", FORMATS)
def test_a_folder_of_a_newer_format_is_refused(tmp_path: Path, part: str) -> None:
    """With one sentence that says which version wrote it; a newer version of the same formats is none."""
    write_facts(CrawlDir(tmp_path).formats, {"version": "9.0.0", **FORMATS})
    os.close(take_lock(tmp_path))
    write_facts(CrawlDir(tmp_path).formats, {"version": "9.0.0", **FORMATS, part: FORMATS[part] + 1})

    with pytest.raises(OperatorError, match=rf"The {part} in .* newer format .* version 9\.0\.0 of this crawler"):
        take_lock(tmp_path)


def test_the_version_that_writes_a_folder_stands_in_it(tmp_path: Path) -> None:
    """It is said who wrote before: nobody in a new folder, nothing new of the same version."""
    new, old = CrawlDir(tmp_path / "new"), CrawlDir(tmp_path / "old")
    new.mkdir()
    old.warc.mkdir(parents=True)
    (old.warc / "a.warc.gz").touch()

    assert [stamp_formats(new, version) for version in ("1.5.0", "1.5.0", "1.6.0")] == ["", "", "1.5.0"]
    assert [stamp_formats(old, version) for version in ("1.5.0", "1.5.0")] == ["1.4.0 or earlier", ""]
    assert read_facts(new.formats) == {"version": "1.6.0", **FORMATS}
