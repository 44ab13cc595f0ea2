"""A command run as an operator runs it, and a crawl of the synthetic web that it looks at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.commands import running
from tests.commands.running import Done
from tests.web import zygote

COMMAND_SECONDS = 60.0
# One reactor a process: these get one of their own.
_WITH_AN_ENGINE = {"crawl", "fetch", "parse", "runspider", "shell", "view"}


def scrapy(*arguments: str, folder: Path | None = None) -> Done:
    """``scrapy ARGUMENTS``, looking at the crawl in ``folder``; in this process, where that can be."""
    if arguments[0] in _WITH_AN_ENGINE:
        return started(*arguments, folder=folder)
    return running.scrapy(*arguments, *_looking_at(folder))


def started(*arguments: str, folder: Path | None = None) -> Done:
    """The same in a process of its own, which reads the operator's settings anew."""
    command = [sys.executable, "-m", "scrapy", *arguments, *_looking_at(folder)]
    ended = zygote.run(command, timeout=COMMAND_SECONDS)
    return Done(ended.returncode, ended.stdout, ended.stderr, ended.stdout.encode())


def _looking_at(folder: Path | None) -> list[str]:
    return ["-s", f"CRAWL_DIR={folder}"] if folder is not None else []


def ask(folder: Path, *arguments: str) -> Any:
    """What the command answers with ``--json``."""
    ended = scrapy(*arguments, "--json", folder=folder)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)
