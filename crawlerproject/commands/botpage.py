"""``scrapy botpage``: the information page of the bot, or the folder to publish, written from the settings."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from crawlerproject.config.settings_table import SETTINGS
from crawlerproject.config.values import identity, own_keys, preset_of, ranges_of
from crawlerproject.crawl.start.setting_limits import check_word
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import InspectCommand, option
from crawlerproject.reports.bot_page import CHANGES, RANGES, Bot, bot_folder, bot_page
from crawlerproject.stores.atomic_files import replace_file
from crawlerproject.stores.operator_files.key_file import write_directory
from crawlerproject.terminal import say


class Command(InspectCommand):
    """Put the page where CRAWLER_INFO_URL leads, the folder at the root of its host."""

    arguments = "[FOLDER|FILE.html] [--address IP] [--purpose TEXT]"
    summary = "Write the bot's information page, or a whole folder to publish, from the settings"

    example = "scrapy botpage public/ -s IDENTITY_RANGES=192.0.2.0/28 -s CRAWLER_CONTACT=you@example.org"

    options = (
        option("--address", action="append", default=[], metavar="IP", help="beside IDENTITY_RANGES; repeatable"),
        option("--purpose", default="", metavar="TEXT", help="what the pages are for, in a sentence of your own"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1 or opts.json:
            raise OperatorError(
                f"Give a folder, a file or neither (then the page is printed), for example: {self.example}"
            )
        settings = self.settings
        check_word("PURPOSE", settings["PURPOSE"], SETTINGS["PURPOSE"])
        if not settings["CRAWLER_CONTACT"]:
            raise OperatorError(
                "The page must say whom to ask: set CRAWLER_CONTACT (-s CRAWLER_CONTACT=you@example.org)."
            )
        who, pace, ranges = identity(settings), preset_of(settings), ranges_of(settings, opts.address)
        bot = Bot(
            who.token, who.user_agent, settings["CRAWLER_CONTACT"], settings["WARC_OPERATOR"], opts.purpose,
            [str(each[0] if each.num_addresses == 1 else each) for each in ranges],
            pace.start_seconds, pace.min_seconds, pace.max_seconds, pace.multiplier,
            settings.getfloat("ROBOTS_TTL_SECONDS") / 3600, settings.getint("FETCH_MAX_BYTES"),
            str(settings.get("PURPOSE") or ""), str(settings["RENDER"]), bool(settings["IDENTITY_KEY_FILE"]),
            settings.getbool("QUIET_HOURS"),
        )  # fmt: skip
        if not args:
            say(*bot_page(bot).rstrip("\n").split("\n"))
            return
        target, where = Path(args[0]), settings["CRAWLER_INFO_URL"] or "unset"
        if target.suffix and not target.is_dir():
            _write({target: bot_page(bot).encode()})
            say(f"Written to {target}; publish it where CRAWLER_INFO_URL leads ({where}).")
            return
        try:
            files = bot_folder(bot, ranges, _read(target / CHANGES), time.time())
        except ValueError as error:
            raise OperatorError(
                f"{target}/{error}; move it away, and the page's list of changes begins again."
            ) from error
        _write({target / name: content for name, content in files.items()})
        ring = own_keys(settings)
        keys = write_directory(target, ring, time.time()) if ring is not None else []
        count = len(files) + len(keys)
        say(
            f"{count} files written to {target}; publish them at the root of the host to which CRAWLER_INFO_URL "
            f"leads ({where}), and again daily: {RANGES} is to be no older."
        )
        if not ranges:
            say(f"{RANGES} is empty: IDENTITY_RANGES would say from where you crawl.", error=True)
        if not bot.operator:
            say("The page does not say whom the crawler serves: WARC_OPERATOR would.", error=True)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _write(files: dict[Path, bytes]) -> None:
    """For everyone to read. Raises OperatorError for what cannot be written."""
    for file, content in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, content)
        except OSError as error:
            raise OperatorError(f"{file} cannot be written ({error.strerror}).") from error
