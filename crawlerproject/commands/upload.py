"""``scrapy upload``: bring what is left of an archive to ARCHIVE_URL, after the crawl or between two."""

from __future__ import annotations

import argparse
import time

from scrapy.settings import BaseSettings

from crawlerproject.config.crawl_file import apply_of_folder
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import OperatorCommand, named_crawl, option
from crawlerproject.rules.printable import counted
from crawlerproject.stores.crawl_dir import CrawlDir, check_there
from crawlerproject.stores.crawl_folders import archives_of
from crawlerproject.terminal import say

_LEFT = 1


class Command(OperatorCommand):
    """Sends files, has them confirmed, and removes them if the settings ask for it; not while a crawl uploads them."""

    arguments = "[FOLDER] [--check]"
    summary = "Bring the archive to ARCHIVE_URL: what a crawl has not uploaded yet"
    details = (
        "Upload what of a crawl folder (default: CRAWL_DIR) is closed and not at ARCHIVE_URL yet, as a crawl does by "
        "itself. --check asks for every file again. Run again, it goes on. Exit status 1 when something is left. "
        "Example: scrapy upload crawls/web -s ARCHIVE_URL=s3://bucket/web"
    )

    options = (option("--check", action="store_true", help="ask of every file again whether it is there as sent"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Upload, and say what was done and what is left."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.stores.uploads.upload_target import checked_url, place_of

        crawl = named_crawl(args, self.settings)
        check_there(crawl)
        self.settings.set("CRAWL_DIR", str(crawl), priority="cmdline")
        apply_of_folder(self.settings)
        if not self.settings["ARCHIVE_URL"]:
            raise OperatorError("Where to? Set ARCHIVE_URL, for example: -s ARCHIVE_URL=s3://bucket/web")
        url = checked_url(str(self.settings["ARCHIVE_URL"]))
        for folder in archives_of(crawl).folders:
            if not send(self.settings, folder, place_of(url, crawl, folder), check=opts.check):
                self.exitcode = _LEFT


def send(settings: BaseSettings, folder: CrawlDir, url: str, *, check: bool = False, aside: bool = False) -> bool:
    """Upload what is left of one folder, say what was done (``aside``: on stderr); whether all is there."""
    from crawlerproject.stores.uploads.upload_process import TRIES_AT_END, UploadProcess, upload_lock
    from crawlerproject.stores.uploads.uploader import UploadOptions

    options = UploadOptions(
        settings.getbool("ARCHIVE_KEEP_LOCAL"),
        settings.getbool("ARCHIVE_READ_BACK"),
        settings.getfloat("ARCHIVE_MAX_BYTES_PER_SECOND"),
        time.time,
        time.sleep,
    )
    with upload_lock(folder, wait=False):
        process = UploadProcess(folder, url, options)
        if check:
            process.uploader.check_again()
        # A crawl that runs still writes to the day of its log.
        ended = not folder.locked()
        for _ in range(TRIES_AT_END):
            wait = process.try_round(ended=ended)
            if not process.failures:
                break
            say(f"{process.error}; again in {wait:.0f} s", error=True)
            time.sleep(wait)
    figures = process.uploader.figures
    say(*process.uploader.problems, error=True)
    left = f", {figures.waiting_files:,} left" if process.failures else ""
    removed = f", {figures.removed_files:,} removed here" if figures.removed_files else ""
    say(f"{url}: {counted(figures.sent_files, 'file')} sent, {figures.sent_bytes:,} bytes{removed}{left}", error=aside)
    return not (process.failures or process.uploader.problems)
