"""Requests for rendered pages, for the shell and for any spider."""

from __future__ import annotations

from scrapy import Request
from scrapy.exceptions import NotSupported

# Of scrapy-playwright's keys for meta: what our browser does, and what it does anyway or has no use for.
_PLAYWRIGHT, PAGE_METHODS = "playwright", "playwright_page_methods"
_IGNORED = frozenset({_PLAYWRIGHT, PAGE_METHODS, "playwright_page_goto_kwargs", "playwright_context"})


def rendered(url: str) -> Request:
    """A request for the page as its scripts leave it; ``response.meta["rendered"]`` is its ``Rendered``."""
    return Request(url, meta={"render": True, "seed": True}, dont_filter=True)


def wants_browser(request: Request) -> bool:
    """Whether ``meta`` asks for a rendered page, by our key or by scrapy-playwright's.

    Raises NotSupported for what would need a page of its own, with the network.
    """
    meta = request.meta
    if not meta.get(_PLAYWRIGHT):
        return bool(meta.get("render"))
    for name, value in meta.items():
        if value and isinstance(name, str) and name.startswith(_PLAYWRIGHT) and name not in _IGNORED:
            raise NotSupported(
                f"meta[{name!r}] cannot be had under the add-on, whose browser has no network of its own; "
                f"use {PAGE_METHODS} (docs/addon.md)."
            )
    return True
