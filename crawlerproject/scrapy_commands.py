"""Our commands for each Scrapy project that has the add-on: the entry points of ``scrapy.commands`` lead here.

So a project keeps its COMMANDS_MODULE, whose commands come first. Scrapy loads every entry point at each start, in
every project of the environment: only the command that is run is imported, and a project without the add-on keeps
Scrapy's own ``crawl``, ``fetch``, ``parse``, ``runspider``, ``shell`` and ``view``.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.project import get_project_settings

_ADDON = "crawlerproject.addon"
_SCRAPYS = frozenset({"crawl", "fetch", "parse", "runspider", "shell", "view"})


class _NotHere(ScrapyCommand):
    """One of ours, for a project that does not have the add-on."""

    def short_desc(self) -> str:
        return f"With the add-on {_ADDON}.PoliteCrawl"

    def process_options(self, args: list[str], opts: argparse.Namespace) -> NoReturn:
        """Say what is missing."""
        raise UsageError(
            f'This command is for projects whose settings.py has ADDONS = {{"{_ADDON}.PoliteCrawl": 100}}; '
            "outside of a project run it as polite-crawler.",
            print_help=False,
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Never: ``process_options`` refuses."""


def __getattr__(name: str) -> Any:
    """The class of the command of this name."""
    if name.startswith("_"):
        raise AttributeError(name)
    name = name.replace("_", "-")  # an entry point is an attribute; a command may have a hyphen
    asked = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), name)
    if _has_addon() and name == asked:
        return import_module(f"crawlerproject.commands.{name}").Command
    return import_module(f"scrapy.commands.{name}").Command if name in _SCRAPYS else _NotHere


@cache
def _has_addon() -> bool:
    """Whether the project's settings name one of our add-ons."""
    addons = get_project_settings().getdict("ADDONS")
    return any((path if isinstance(path, str) else path.__module__).startswith(_ADDON) for path in addons)
