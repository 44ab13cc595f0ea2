"""HTTP/1.1 over asyncio: Scrapy's download handler, which keeps the exact bytes of an exchange.

``download_handler`` gets a request, ``resolver`` names the addresses it may go to, ``pool`` has a connection carry it,
``http1`` writes it and reads the answer without a socket or a clock, ``decoding`` takes the Content-Encoding off within
a bound.
"""

import sys

from crawlerproject import request_meta

# What requests that an earlier version left on disk name it by.
sys.modules[f"{__name__}.exchange"] = request_meta
