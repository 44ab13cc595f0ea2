"""Processes that are forked instead of started behave as started ones do."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web import zygote

SCRAPY = [sys.executable, "-m", "scrapy"]
BOT_NAME = [*SCRAPY, "settings", "--get", "BOT_NAME"]


def test_folder_and_environment_are_its_own(tmp_path: Path) -> None:
    """Inside the project its settings count, elsewhere Scrapy's; the environment names others."""
    named = zygote.direct(SCRAPY_SETTINGS_MODULE="crawlerproject.settings", PYTHONPATH=str(zygote.PROJECT))

    assert zygote.run(BOT_NAME).stdout == "polite-crawler\n"
    assert zygote.run(BOT_NAME, cwd=tmp_path).stdout == "scrapybot\n"
    assert zygote.run(BOT_NAME, cwd=tmp_path, env=named).stdout == "polite-crawler\n"


def test_what_another_start_imported_of_the_crawler_is_unknown(tmp_path: Path) -> None:
    """Settings of the operator are read when the crawler is imported: by each process for itself."""
    (tmp_path / "polite-crawler").mkdir()
    name = [*SCRAPY, "settings", "--get", "CRAWLER_NAME"]
    before = zygote.run(name).stdout

    (tmp_path / "polite-crawler" / "settings.toml").write_text('CRAWLER_NAME = "Another"\n')

    assert before == "PoliteCrawler\n"
    assert zygote.run(name, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}).stdout == "Another\n"
    assert zygote.run(name, env={**os.environ, "POLITE_CRAWLER_NAME": "Third"}).stdout == "Third\n"


def test_another_crawler_on_the_path_is_the_one_that_runs(tmp_path: Path) -> None:
    """The zygote has imported this one, which is not the one that a start would import."""
    (tmp_path / "crawlerproject").mkdir()
    (tmp_path / "crawlerproject" / "__init__.py").touch()
    (tmp_path / "crawlerproject" / "settings.py").write_text('BOT_NAME = "another"\n')
    other = zygote.direct(SCRAPY_SETTINGS_MODULE="crawlerproject.settings", PYTHONPATH=str(tmp_path))

    assert zygote.run(BOT_NAME, cwd=tmp_path, env=other).stdout == "another\n"
    assert zygote.run(BOT_NAME).stdout == "polite-crawler\n"


#: What the crawler calls as it is imported, and would return something else in another process.
_OWN_TO_A_PROCESS = {
    "crawlerproject/api.py": {"os.environ.pop"},  # for scripts: no command imports it
    "crawlerproject/commands/fleet.py": {"uuid.uuid4"},  # imported again
    "crawlerproject/hooks/hook_events.py": {
        "urllib.request.build_opener"
    },  # it reads proxies: with them nothing is kept
    "crawlerproject/runtime/clock.py": {"epoch_of_boot"},  # set again
    "crawlerproject/settings.py": {"_read_user_settings"},  # with such settings nothing is kept
}
_OWN_WORDS = re.compile(
    r"environ|\btime\.|epoch_of|uuid|random|secrets|getpid|hostname|user_settings|build_opener|getcwd|isatty"
)


class _Calls(ast.NodeVisitor):
    """What is called as a module is imported."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> None:
        self.names.add(ast.unparse(node.func))
        self.generic_visit(node)


def test_what_importing_the_crawler_does_for_one_process_is_known() -> None:
    """It is done again after a fork; what is new here needs a place in ``zygote._renew``."""
    found: dict[str, set[str]] = {}
    for path in sorted((zygote.PROJECT / "crawlerproject").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if _OWN_WORDS.search(text):
            calls = _Calls()
            calls.visit(ast.parse(text))
            if own := {name for name in calls.names if _OWN_WORDS.search(f"{name}")}:
                found[str(path.relative_to(zygote.PROJECT))] = own

    assert found == _OWN_TO_A_PROCESS


def test_exit_status_and_both_outputs() -> None:
    """As of any process, in text."""
    ended = zygote.run([*SCRAPY, "nothing"])

    assert ended.returncode == 2
    assert "Unknown command: nothing" in ended.stdout
    with pytest.raises(subprocess.CalledProcessError):
        zygote.run([*SCRAPY, "nothing"], check=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signals_reach_it(number: signal.Signals) -> None:
    """Its status says which one ended it; a second one reaches nothing."""
    with zygote.Process([*SCRAPY, "shell", "--nolog"]) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.send_signal(number)

    process.send_signal(number)
    assert process.returncode in (-number, 0)
    assert process.peak_bytes > 0


def test_what_the_interpreter_would_read_is_a_real_start(tmp_path: Path) -> None:
    """A hash seed, another encoding: a fork would not know of them."""
    forked = zygote.run([*SCRAPY, "version"], env=zygote.direct())
    started = zygote.run([*SCRAPY, "version"], env=zygote.direct(PYTHONHASHSEED="1"))

    assert zygote._forks([*SCRAPY, "version"], zygote.direct())
    assert not zygote._forks([*SCRAPY, "version"], zygote.direct(PYTHONHASHSEED="1"))
    assert not zygote._forks([sys.executable, "-m", "scrapyd"], zygote.direct())
    (tmp_path / "sitecustomize.py").touch()
    assert not zygote._forks([*SCRAPY, "version"], zygote.direct(PYTHONPATH=str(tmp_path)))
    assert forked.stdout == started.stdout
