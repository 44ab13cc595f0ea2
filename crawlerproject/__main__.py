"""``python -m crawlerproject`` and ``polite-crawler``: Scrapy with this project's settings, in any folder."""

from __future__ import annotations

import gc
import os
import sys

from crawlerproject.stores.operator_files.user_settings import ANYWHERE

_OURS = "crawlerproject.settings"


def main() -> None:
    """Run ``scrapy`` as in a checkout; a project of the caller's own (SCRAPY_SETTINGS_MODULE) is used instead."""
    if os.environ.setdefault("SCRAPY_SETTINGS_MODULE", _OURS) == _OURS:
        os.environ[ANYWHERE] = "1"
    asked = sys.argv[1:2]
    if asked in (["--version"], ["-V"]):
        from crawlerproject.command_list import version

        print(version())
        return
    gc.disable()  # what Scrapy imports stays: to look for garbage in it takes 0.02 s of a start
    from crawlerproject import light_start
    from crawlerproject.command_list import GROUPED, PoliteParser, overview

    if os.environ["SCRAPY_SETTINGS_MODULE"] == _OURS and light_start.can_be_light(sys.argv[1:], GROUPED):
        light_start.run(sys.argv[1:], PoliteParser)
    if asked == ["crawl"]:
        light_start.run_late(ours=os.environ["SCRAPY_SETTINGS_MODULE"] == _OURS)
    from scrapy import cmdline

    class Parser(PoliteParser, cmdline.ScrapyArgumentParser):
        """Scrapy's, too."""

    gc.freeze()
    gc.enable()
    if not asked or asked in (["-h"], ["--help"], ["help"]):
        try:
            print(overview(), flush=True)
        except BrokenPipeError:  # the reader has seen enough, as ``head`` does
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # or Python complains when it flushes at its end
        return
    cmdline.ScrapyArgumentParser = Parser  # type: ignore[misc]
    cmdline.execute(["scrapy", *sys.argv[1:]])


if __name__ == "__main__":
    main()
