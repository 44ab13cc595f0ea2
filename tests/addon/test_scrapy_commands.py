"""Our commands in other projects, as Scrapy finds them where the package is installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.web import zygote
from tests.web.running import PROJECT

GROUP = "scrapy.commands"
ENTRIES: dict[str, str] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
THEIRS = """
from scrapy.commands import ScrapyCommand


class Command(ScrapyCommand):
    requires_crawler_process = False

    def short_desc(self):
        return "Theirs"

    def run(self, args, opts):
        print("theirs")
"""
ADDON = '\nADDONS = {"crawlerproject.addon.PoliteCrawl": 100}\nCOMMANDS_MODULE = "other.commands"\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two commands of its own, beside the package as pip would install it."""
    home = tmp_path_factory.mktemp("commands")
    installed = home / "installed" / "crawlerproject-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: crawlerproject\nVersion: 0\n")
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in ENTRIES.items())]
    (installed / "entry_points.txt").write_text("\n".join(lines) + "\n")
    assert scrapy(home, home, "startproject", "other").returncode == 0
    commands = home / "other" / "other" / "commands"
    commands.mkdir()
    (commands / "__init__.py").touch()
    for name in ("mine", "rank"):
        (commands / f"{name}.py").write_text(THEIRS)
    return home


def scrapy(home: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in that folder, with the package installed."""
    path = f"{PROJECT}:{home / 'installed'}"
    command = [sys.executable, "-m", "scrapy", *arguments]
    return zygote.run(command, cwd=folder, env=zygote.direct(PYTHONPATH=path), timeout=60)


def test_each_command_is_an_entry_point() -> None:
    """One line a command, in pyproject.toml."""
    sources = {path.stem: path.read_text() for path in (PROJECT / "crawlerproject" / "commands").glob("*.py")}
    names = {name for name, text in sources.items() if "class Command(" in text}

    assert set(ENTRIES) == names, "add the command to [project.entry-points] in pyproject.toml"
    assert {name: f"crawlerproject.scrapy_commands:{name.replace('-', '_')}" for name in names} == ENTRIES


def test_a_project_keeps_its_commands_module(home: Path) -> None:
    """With the add-on ours are there beside its own, which win; Scrapy's own are ours, as in our project."""
    project = home / "other"
    settings = project / "other" / "settings.py"
    before = settings.read_text()
    settings.write_text(before + ADDON)
    try:
        assert [scrapy(home, project, name).stdout for name in ("mine", "rank")] == ["theirs\n"] * 2
        ours = scrapy(home, project, "status", "nowhere")
        refused = scrapy(home, project, "crawl", "nothing")
        unread = scrapy(home, project, "parse", "-c", "nothing", "http://a.test/")
        listed = scrapy(home, project).stdout
    finally:
        settings.write_text(before)

    assert ours.returncode == 2
    assert ours.stderr.startswith("scrapy status takes no argument")
    assert "There is no spider 'nothing'" in refused.stderr
    assert (unread.returncode, unread.stderr) == (2, "error: WebSpider has no method nothing.\n")  # the add-on's spider
    assert all(f"\n  {name} " in listed for name in ("why", "hosts", "mine"))


def test_a_project_without_the_addon_is_left_alone(home: Path) -> None:
    """Its ``scrapy crawl`` is Scrapy's; one of ours says what is missing."""
    project = home / "other"

    theirs, ours = scrapy(home, project, "crawl", "-h").stdout, scrapy(home, project, "why", "x")

    assert "Run a spider" in theirs
    assert ours.returncode == 2
    assert "This command is for projects whose settings.py has ADDONS" in ours.stderr
