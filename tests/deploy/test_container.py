"""The Containerfile, read: what it copies, installs and starts exists, is pinned, and is not root's."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from fnmatch import fnmatch

from scrapy.settings import Settings

from crawlerproject.commands.status import Command as Status
from tests.web.running import PROJECT

TEXT = re.sub(r"\\\n\s*", " ", (PROJECT / "Containerfile").read_text())
LINES = [(name, rest) for name, rest in re.findall(r"^([A-Z]+) (.*)$", TEXT, flags=re.MULTILINE)]


def of(name: str) -> list[str]:
    """What follows each instruction of this name."""
    return [rest for instruction, rest in LINES if instruction == name]


def test_what_is_copied_is_there_and_sent() -> None:
    """Each source is in the project and among what .containerignore lets through; else the build fails late."""
    let_through = re.findall(r"^!(.+)$", (PROJECT / ".containerignore").read_text(), flags=re.MULTILINE)
    sources = [part for copy in of("COPY") if "--from" not in copy for part in copy.split()[:-1]]

    assert sources
    for source in sources:
        assert (PROJECT / source).exists()
        assert any(fnmatch(source, pattern) for pattern in let_through)


def test_nothing_comes_without_a_hash() -> None:
    """Each pip of the two: by hashes or from no index; what is built is built by what is there."""
    calls = [call for run in of("RUN") for call in run.split("&&") if re.search(r"\bpip\b.* (install|wheel) ", call)]

    assert len(calls) == 4
    for call in calls:
        assert "--require-hashes" in call or "--no-index" in call
        assert "--only-binary :all:" in call or "--no-build-isolation" in call or "*.whl" in call


def test_the_build_tool_is_the_tests_one() -> None:
    """deploy/build.lock pins the setuptools that the tests build the package with."""
    (pin,) = re.findall(r"^(setuptools==\S+) ", (PROJECT / "deploy" / "build.lock").read_text(), flags=re.MULTILINE)

    assert pin in (PROJECT / "requirements-dev.txt").read_text().split()


def test_signals_reach_the_crawl_which_is_not_root() -> None:
    """Arrays and no shell between; the user is a number, so that a host can check it."""
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]
    entry, command = (json.loads(*of(name)) for name in ("ENTRYPOINT", "CMD"))

    assert entry[0] == "tini"
    assert entry[-1] in scripts
    assert command == ["crawl", "web"]
    assert of("STOPSIGNAL") == ["SIGTERM"]
    (user,) = of("USER")
    assert int(user) > 0
    assert [name for name, _ in LINES].index("USER") > [name for name, _ in LINES].index("RUN")
    assert of("VOLUME") == ["/srv/crawls"]


def test_a_browser_comes_with_what_controls_it() -> None:
    """Playwright's driver has its libraries with it but for one, which Debian's Chromium does not need."""
    (added,) = re.findall(r"\$\{CHROMIUM:\+([^}]*)\}", TEXT)

    assert added.split() == ["chromium-headless-shell", "libatomic1"]


def test_the_health_check_is_a_command_of_ours() -> None:
    """With an option that it has."""
    (check,) = of("HEALTHCHECK")
    program, name, *options = json.loads(check.partition("CMD ")[2])
    parser, status = argparse.ArgumentParser(), Status()
    status.settings = Settings()
    status.add_options(parser)

    assert (program, name) == ("polite-crawler", "status")
    assert parser.parse_args(options).alive
