"""``make`` builds the native reader where it can, and a crawl never fails for it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from crawlerproject import native
from crawlerproject.native.build import compiler, file_name, headers
from tests.native.copies import NATIVE, asked, copy_of_the_room, make, run
from tests.web.running import PROJECT

needs_compiler = pytest.mark.skipif(not (compiler() and headers()), reason="there is no C compiler")
needs_reader = pytest.mark.skipif(native.reader is None, reason=f"pages are read here by {native.choice.sentence}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With nothing built."""
    return copy_of_the_room(tmp_path / "project")


@needs_compiler
def test_built_once_and_again_for_other_sources(project: Path) -> None:
    """A second ``make`` says nothing; after a change of the C sources the old build is neither used nor kept."""
    first, second = make(project), make(project)
    source = project / NATIVE / "module.c"
    source.write_text(source.read_text() + "/* changed */\n")
    stale = asked(project)
    third = make(project)

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("Building the native page reader")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert stale[0] == "Python (the native reader was built from other sources) False"
    assert stale[1].count("\n") == 0
    assert "Pages are read in Python: the native reader was built from other sources" in stale[1]
    assert third.stdout == first.stdout
    assert asked(project) == ("native True", "")


def test_without_a_compiler_one_line_says_how_to_get_it(project: Path, tmp_path: Path) -> None:
    """And the exit status is that of success."""
    (tmp_path / "nothing").mkdir()

    made = make(project, PATH=str(tmp_path / "nothing"))

    assert (made.returncode, made.stdout, made.stderr.count("\n")) == (0, "", 1)
    assert "The native page reader is missing: pages are read in Python" in made.stderr
    assert "apt-get install gcc libc6-dev" in made.stderr
    assert asked(project) == ("Python (the native reader has not been built) False", "")


# A Python whose headers are elsewhere than it says.
HEADLESS = """
import runpy, sys, sysconfig
paths = sysconfig.get_paths()
sysconfig.get_paths = lambda: {**paths, "include": "/nowhere", "platinclude": "/nowhere"}
sys.argv = ["scripts/build_native.py"]
runpy.run_path("scripts/build_native.py", run_name="__main__")
"""


@needs_compiler
def test_without_headers_one_line_says_how_to_get_them(project: Path) -> None:
    """Those of the very Python that runs."""
    made = run(project, "-c", HEADLESS)

    assert (made.returncode, made.stdout, made.stderr.count("\n")) == (0, "", 1)
    assert "apt-get install python3." in made.stderr
    assert "gcc" not in made.stderr


@needs_compiler
def test_what_does_not_compile_is_said_and_logged(project: Path) -> None:
    """The crawl goes on without, also without what an earlier version had built."""
    make(project)
    (project / NATIVE / "module.c").write_text("broken\n")

    made = make(project)

    assert (made.returncode, made.stderr.count("\n")) == (0, 1)
    assert "could not be built (see build/native.log): pages are read in Python" in made.stderr
    assert "error" in (project / "build" / "native.log").read_text()
    assert not list((project / NATIVE).glob("*.so"))
    assert not list((project / NATIVE).glob(".build-*"))
    assert asked(project) == ("Python (the native reader has not been built) False", "")


def test_a_checkout_without_the_sources_builds_nothing(project: Path) -> None:
    """And says nothing."""
    (project / NATIVE / "module.c").unlink()

    made = make(project)

    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")


@needs_reader
def test_nothing_of_lexbor_can_be_seen_from_outside() -> None:
    """Selectolax's shared object shows its own: neither may be linked to the other's functions."""
    library = ctypes.CDLL(str(PROJECT / NATIVE / file_name()))

    assert library.PyInit__page
    for name in ("lxb_html_document_create", "lxb_html_document_parse", "lexbor_malloc", "page_read"):
        with pytest.raises(AttributeError):
            getattr(library, name)


@needs_reader
def test_both_lexbors_work_in_one_process() -> None:
    """In either order of imports, each with its own memory."""
    ours, theirs = "from crawlerproject import native", "import selectolax.lexbor"
    both = "print(selectolax.lexbor.LexborHTMLParser('<p>one').text(), native.reader.weight(b'<p>one')); "

    for imports in (f"{ours}; {theirs}; ", f"{theirs}; {ours}; "):
        assert asked(PROJECT, imports + both + both) == ("one 0\none 0", "")
