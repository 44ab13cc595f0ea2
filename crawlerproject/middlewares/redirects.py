"""Redirects for the shell and its kin: followed hop by hop, each through every gate, and without a Referer."""

from __future__ import annotations

from scrapy.downloadermiddlewares.redirect import RedirectMiddleware


class ShellRedirects(RedirectMiddleware):
    """Scrapy's own; a crawl follows redirects as links of its frontier instead."""

    def _engine_started(self) -> None:
        """Nothing to look for: no Referer is sent, as in a crawl (Scrapy's own would warn that it finds no sender)."""
