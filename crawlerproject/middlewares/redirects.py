"""Redirects in ``scrapy shell``, ``fetch``, ``parse`` and ``view``: each hop passes every gate, without a Referer."""

from __future__ import annotations

from scrapy.downloadermiddlewares.redirect import RedirectMiddleware


class ShellRedirects(RedirectMiddleware):
    """Scrapy's own. A crawl queues a redirect's target as a link instead."""

    def _engine_started(self) -> None:
        """Scrapy's would look for the Referer middleware, and warn that it is missing: none is sent, as in a crawl."""
