"""``python -m tests.web.later DAYS crawl web …``: Scrapy's command line in a process whose clock is DAYS ahead.

A month of coming back is tested in seconds: the machine's clock stays, the process has another.
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    ahead_seconds = float(sys.argv[1]) * 86400
    real = time.time
    time.time = lambda: real() + ahead_seconds  # before anything of ours is imported
    from scrapy.cmdline import execute

    execute(["scrapy", *sys.argv[2:]])


if __name__ == "__main__":
    main()
