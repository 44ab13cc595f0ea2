"""A command run as an operator runs it, and a crawl of the synthetic web that it looks at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.web import zygote

COMMAND_SECONDS = 60.0


def scrapy(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """``scrapy ARGUMENTS``, looking at the crawl in ``folder``."""
    where = ["-s", f"CRAWL_DIR={folder}"] if folder is not None else []
    command = [sys.executable, "-m", "scrapy", *arguments, *where]
    return zygote.run(command, timeout=COMMAND_SECONDS)


def ask(folder: Path, *arguments: str) -> Any:
    """What the command answers with ``--json``."""
    ended = scrapy(*arguments, "--json", folder=folder)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)
