"""What ``polite-crawler`` says of itself: its version, and its commands in groups with an example of each."""

from __future__ import annotations

import argparse
import re
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from crawlerproject import __version__

PROGRAM = "polite-crawler"
_MODULE = "crawlerproject"
_PACKAGE = "crawlerproject.commands"  # imported when it is listed, as Scrapy does
GROUPS = {
    "Crawl": (
        "crawl",
        "runspider",
        "fleet",
        "stop",
        "pause",
        "resume",
        "add",
        "forecast",
        "plan",
        "commoncrawl",
        "samples",
    ),
    "Look on": ("status", "hosts", "why", "report", "traps", "robots", "desk"),
    "The archive": (
        "replay",
        "lookup",
        "show",
        "wacz",
        "verify",
        "audit",
        "recover",
        "index",
        "upload",
        "reparse",
        "state",
    ),
    "Text, ranks, search": ("process", "rank", "load", "search", "export"),
    "Site owners": (
        "never",
        "withdraw",
        "requests",
        "reply",
        "botpage",
        "doctor",
        "identity",
        "verify-request",
        "consent",
    ),
    "One page, by hand": ("fetch", "parse", "shell", "view"),
}
"""What a command is for; one that has no group yet stands below the others."""
GROUPED = frozenset(name for names in GROUPS.values() for name in names)
_EXAMPLES = {"crawl": "scrapy crawl web -a seeds=https://example.org/ -s CRAWLER_CONTACT=you@example.org"}


def version() -> str:
    """One line: ours, and Scrapy's, which decides what spiders may do."""
    from importlib import metadata  # 0.03 s of a start that does not ask

    return f"{PROGRAM} {__version__} (Scrapy {metadata.version('Scrapy')})"


def overview() -> str:
    """All commands of ours, by group, each with an example; then where to find Scrapy's."""
    lines = [version(), f"\nUsage: {PROGRAM} COMMAND [OPTIONS]; {PROGRAM} COMMAND -h explains one."]
    for group, names in {**GROUPS, "More": tuple(sorted(commands() - GROUPED))}.items():
        lines += [f"\n{group}"] if names else []
        for name in names:
            command = import_module(f"{_PACKAGE}.{name}").Command()
            lines += [f"  {name:<15} {command.short_desc()}", f"{'':18}{example_of(name, command)}"]
    lines.append("\nScrapy's own commands (bench, check, edit, genspider, list, settings, startproject) work as well.")
    return "\n".join(lines)


_TYPED = re.compile(rf"\bscrapy (?=(?:{'|'.join(GROUPED)})\b)")


def commands() -> set[str]:
    """The names of all commands of ours."""
    names = {module.name for module in iter_modules(import_module(_PACKAGE).__path__)}
    return {name for name in names if hasattr(import_module(f"{_PACKAGE}.{name}"), "Command")}


def example_of(name: str, command: Any) -> str:
    """The example of its help, under our program's name."""
    # What has no ``example`` of its own ends its help with one.
    given = _EXAMPLES.get(name) or getattr(command, "example", "") or command.long_desc().partition("Example: ")[2]
    return renamed(given.strip())


def renamed(text: str) -> str:
    """``scrapy COMMAND`` as it is typed here."""
    return _TYPED.sub(f"{PROGRAM} ", text)


def as_typed(text: str) -> str:
    """``scrapy COMMAND`` under the name by which this process was started."""
    started = Path(sys.argv[0])
    return renamed(text) if started.name == PROGRAM or started.parent.name == _MODULE else text


class PoliteParser(argparse.ArgumentParser):
    """One whose help names the program that was called."""

    def __init__(self, *args: Any, **given: Any) -> None:
        for part in ("usage", "description"):
            if given.get(part):
                given[part] = renamed(given[part])
        super().__init__(*args, **given)
