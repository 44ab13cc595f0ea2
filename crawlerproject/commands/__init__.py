"""The operator's commands, one a file, under Scrapy's ``COMMANDS_MODULE``; ``base`` holds what they share.

A command reads its arguments, asks one of the rooms below, and prints. Nothing imports a command.

Scrapy's command line imports all of them at each start, and what they import stays: the collector, which would look at
it some fifteen times (0.02 s of a start), looks rarely from here on, as in a crawl.
"""

import gc

gc.set_threshold(50_000, *gc.get_threshold()[1:])
