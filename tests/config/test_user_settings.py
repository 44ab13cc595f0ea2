"""The operator's own settings, outside the checkout: a file, the environment, a crawl's file, and their order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.stores.operator_files.user_settings import read_user_settings, user_path
from tests.commands.crawled import started as scrapy
from tests.web.running import PROJECT


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the operator's files."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = Path(user_path("~/.config/polite-crawler"))
    folder.mkdir(parents=True)
    return folder


def contact(crawl: Path, *arguments: str) -> str:
    """Whom the bot's page names, as the settings of a command have it."""
    done = scrapy("botpage", *arguments, folder=crawl)
    assert done.returncode == 0, done.stderr
    return next(name for name in ("line", "environment", "crawl", "user") if f"{name}@example.org" in done.stdout)


def test_the_order_of_places(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line wins over the environment, that over the crawl's file, that over the operator's."""
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    (config / "settings.toml").write_text('CRAWLER_CONTACT = "user@example.org"\n')
    assert contact(crawl) == "user"
    (crawl / "crawl.toml").write_text('[settings]\nCRAWLER_CONTACT = "crawl@example.org"\n')
    assert contact(crawl) == "crawl"
    monkeypatch.setenv("POLITE_CRAWLER_CONTACT", "environment@example.org")
    assert contact(crawl) == "environment"
    assert contact(crawl, "-s", "CRAWLER_CONTACT=line@example.org") == "line"


def test_old_names_go_on_working_there(config: Path) -> None:
    """In settings.toml and in the environment, in this project and in one with the add-on."""
    (config / "settings.toml").write_text("FRONTIER_PATIENCE_SECONDS = 30\nRENDER_MAX_PAGES = 5\n")
    program = (
        "from crawlerproject import settings\n"
        "print(settings.FRONTIER_MAX_REST_SECONDS, settings.given()['OWN_ERRORS_MAX_IN_A_ROW'])\n"
        "settings.user().environment and print(settings.FRONTIER_PATIENCE_SECONDS)"
    )
    environment = dict(os.environ) | {"POLITE_ERRORS_IN_A_ROW": "3"}

    told = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    ).stdout

    assert told.split() == ["30", "3", "30"]


def test_a_crawl_is_asked_about_before_its_first_start(config: Path, tmp_path: Path) -> None:
    """With a crawl.toml that was prepared by hand a forecast needs no argument."""
    (tmp_path / "crawl.toml").write_text(
        'seeds = ["http://a.test/", "http://a.test/2"]\n[settings]\nPACE_PRESET = "fixed70"\n'
    )

    told = scrapy("forecast", folder=tmp_path)

    assert "2 seeds on 1 host " in told.stdout, told.stderr
    assert "one request to a host every 1 min 10 s" in told.stdout


@pytest.mark.parametrize(
    ("text", "environment", "sentence"),
    [
        ("CRAWLER_CONTACT = you\n", {}, "settings.toml is not TOML"),
        ("PACE_MIN_SECOND = 3\n", {}, "settings.toml sets PACE_MIN_SECOND, which is no setting; PACE_MIN_SECONDS was"),
        ("", {"POLITE_PACE_MIN_SECOND": "3"}, "POLITE_PACE_MIN_SECOND sets PACE_MIN_SECOND, which is no setting"),
        ("WATCH_PORT = 99999\n", {}, "WATCH_PORT is 99999; it must be from 0"),
    ],
)
def test_a_mistake_there_is_one_sentence(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, environment: dict[str, str], sentence: str
) -> None:
    """As on a command line: the crawl does not start."""
    (config / "settings.toml").write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    ended = scrapy("crawl", "web", "-a", "seeds=http://a.test/", "-s", "CRAWLER_CONTACT=a@b.c", folder=tmp_path)

    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert sentence in ended.stderr


def test_a_crawl_file_cannot_move_its_crawl(config: Path, tmp_path: Path) -> None:
    """CRAWL_DIR in it would lead elsewhere."""
    (tmp_path / "crawl.toml").write_text('[settings]\nCRAWL_DIR = "/elsewhere"\n')

    ended = scrapy("crawl", "web", "-a", "seeds=http://a.test/", folder=tmp_path)

    assert (ended.returncode, "sets CRAWL_DIR, but it lies in that folder" in ended.stderr) == (2, True)


def test_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the desktop's specification has them; a relative XDG_CONFIG_HOME is none."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert user_path("~/.config/polite-crawler/x") == "/home/me/.config/polite-crawler/x"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/me")
    assert user_path("~/.config/polite-crawler/x") == "/etc/me/polite-crawler/x"
    assert user_path("lists/x") == "lists/x"
    assert dict(read_user_settings({"POLITE_RENDER": "never", "RENDER": "always"}).items()) == {"RENDER": "never"}


def test_a_deploy_target_of_ones_own(config: Path, tmp_path: Path) -> None:
    """scrapyd-deploy reads ~/.config/scrapy.cfg as well, so that nobody edits the project's scrapy.cfg for it."""
    (config.parent / "scrapy.cfg").write_text("[deploy:farm]\nurl = http://farm.example:6800/\nproject = crawler\n")

    listed = subprocess.run(
        [Path(sys.executable).parent / "scrapyd-client", "targets"], cwd=PROJECT, env=dict(os.environ),
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip

    assert {tuple(line.split()) for line in listed.splitlines()} >= {
        ("farm", "http://farm.example:6800/"), ("local", "http://localhost:6800/"),
    }  # fmt: skip
