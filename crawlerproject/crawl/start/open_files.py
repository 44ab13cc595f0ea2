"""How many files this process may open: as many as the crawl wants, as far as the system allows."""

from __future__ import annotations

import logging
import resource
from typing import TYPE_CHECKING

from crawlerproject.fetch.limits import MAX_IDLE_CONNECTIONS
from crawlerproject.stores.rocks.options import OPEN_FILES

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

# The archive, logs, libraries, pipes to other processes, questions to DNS servers: some 60 seen (ours).
_OTHERS = 200


def raise_limit(settings: BaseSettings) -> None:
    """Raise this process's soft limit of open files to what its requests need; warn when the hard one is lower.

    A login has 1,024 of 500,000 allowed files for the sake of programs that use select(2).
    """
    in_flight = settings.getint("FRONTIER_MAX_IN_FLIGHT")
    least = in_flight + OPEN_FILES + _OTHERS
    wanted = least + MAX_IDLE_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if resource.RLIM_INFINITY != soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < least:
        logger.warning(
            "This process may open %d files, and FRONTIER_MAX_IN_FLIGHT=%d may need %d: raise the limit (ulimit -Hn, "
            "LimitNOFILE of the unit) or lower the setting; requests for which there is no file wait.",
            most, in_flight, least,
        )  # fmt: skip
