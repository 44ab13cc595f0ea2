"""``python -m crawlerproject`` and ``polite-crawler``: Scrapy with this project's settings, in any folder."""

from __future__ import annotations

import gc
import os
import sys

from crawlerproject.stores.operator_files.user_settings import ANYWHERE


def main() -> None:
    """As ``scrapy`` in a checkout; a project of the caller's own (SCRAPY_SETTINGS_MODULE) is used instead."""
    if os.environ.setdefault("SCRAPY_SETTINGS_MODULE", "crawlerproject.settings") == "crawlerproject.settings":
        os.environ[ANYWHERE] = "1"
    asked = sys.argv[1:2]
    if asked in (["--version"], ["-V"]):
        from crawlerproject.command_list import version

        print(version())
        return
    gc.disable()  # what Scrapy imports stays: to look for garbage in it takes 0.02 s of a start
    from scrapy import cmdline

    from crawlerproject.command_list import PoliteParser, overview

    gc.freeze()
    gc.enable()
    if not asked or asked in (["-h"], ["--help"], ["help"]):
        print(overview())
        return
    cmdline.ScrapyArgumentParser = PoliteParser  # type: ignore[misc]
    cmdline.execute(["scrapy", *sys.argv[1:]])


if __name__ == "__main__":
    main()
